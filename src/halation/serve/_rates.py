"""How often one client may ask: a bucket of tokens each, refilled with time."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Rates", "client_key"]

_CLIENTS = 10_000  # remembered at once; the one not seen for longest is forgotten first


class Rates:
    """Token buckets: `rate` a second on average, `burst` at once; rate 0 lets everything through.

    >>> now = [0.0]
    >>> rates = Rates(rate=2.0, burst=2, clock=lambda: now[0])
    >>> [rates.wait("a"), rates.wait("a"), rates.wait("a"), rates.wait("b")]
    [0.0, 0.0, 0.5, 0.0]
    >>> now[0] = 0.5
    >>> rates.wait("a")
    0.0
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, when

    def wait(self, client: str) -> float:
        """Take a token: 0.0 where there was one, otherwise the seconds until there is (and none is taken)."""
        if not self.rate:
            return 0.0
        now = self._clock()
        left, before = self._buckets.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - before) * self.rate)
        allowed = left >= 1.0
        self._buckets[client] = (left - 1.0 if allowed else left, now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self.rate


def client_key(address: str) -> str:
    """Who counts as one client: an IPv4 address, or the /64 network an IPv6 address can pick from at will.

    >>> client_key("10.0.0.7"), client_key("2001:db8:1:2:3:4:5:6"), client_key("testclient")
    ('10.0.0.7', '2001:db8:1:2::', 'testclient')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
