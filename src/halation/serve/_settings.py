"""The limits of a server, checked before anything is opened."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass

from halation._errors import InputError

__all__ = ["ServeSettings", "is_loopback"]

_MOST_PIXELS = 2 * 89_478_485  # above it Pillow raises DecompressionBombError
_SHORTEST_TOKEN = 16  # characters; `openssl rand -hex 16` gives 32


@dataclass(frozen=True)
class ServeSettings:
    """Where to listen, whom to let in, and the limits of requests.

    >>> ServeSettings().host
    '127.0.0.1'
    >>> ServeSettings(host="0.0.0.0")
    Traceback (most recent call last):
    ...
    halation._errors.InputError: host 0.0.0.0 lets other machines in, so a token is needed; take the output of
    `openssl rand -hex 16` (token=…)
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    max_k: int = 100  # hits in one answer
    max_body: int = 256 * 1024  # bytes of a request without a picture: 10,000 words are some 60 kB
    max_upload: int = 20 * 2**20  # bytes of a request with one
    max_pixels: int = 50_000_000  # of an uploaded picture, three bytes each when decoded
    uploads: int = 4  # uploaded pictures in memory at once; others wait
    rate: float = 20.0  # searches per second and client, on average; 0 = no limit
    burst: int = 60  # searches of one client at once; typing makes several
    explain_rate: float = 0.5  # explanations per second and client; one costs as much as many searches; 0 = no limit
    explain_burst: int = 8  # explanations of one client at once
    workers: int = 1  # threads that encode and search (they share the cores with torch's own)
    queue: int = 256  # searches that may wait; the next is refused at once
    timeout: float = 30.0  # seconds for an answer, waiting included
    receive_timeout: float = 20.0  # seconds for a request to arrive completely
    shutdown_timeout: float = 15.0  # seconds that a stopping server gives to requests under way
    thumbnail: int = 512  # longest side of a thumbnail, pixels
    thumbnail_cache: int = 64 * 2**20  # bytes of thumbnails kept in memory
    trusted_proxies: tuple[str, ...] = ()  # whose X-Forwarded-For is trusted
    allowed_hosts: tuple[str, ...] = ()  # host names to answer to besides localhost, such as a proxy's

    def __post_init__(self) -> None:
        positive = (
            "max_k", "max_body", "max_upload", "max_pixels", "uploads", "burst", "explain_burst", "workers", "queue",
            "timeout", "receive_timeout", "shutdown_timeout", "thumbnail",
        )  # fmt: skip
        for name in positive:
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}; it must be a number greater than 0")
        if self.max_pixels > _MOST_PIXELS:
            raise InputError(
                f"max_pixels is {self.max_pixels:,}; Pillow does not decode pictures of more than {_MOST_PIXELS:,}"
            )
        for name, what in (("rate", "searches"), ("explain_rate", "explanations")):
            if not 0 <= getattr(self, name) < math.inf:
                remedy = f"give {what} per second, or 0 for no limit"
                raise InputError(f"{name} is {getattr(self, name)}", remedy=remedy)
        if not 0 <= self.port <= 65535:
            raise InputError(f"port is {self.port}", remedy="give a number from 1 to 65535 (0 takes a free one)")
        for name in self.allowed_hosts:
            if not name or any(mark in name for mark in "*/:[] "):
                remedy = "give one without a port, such as search.example.org"
                raise InputError(f"allowed host {name!r} is not a host name", remedy=remedy)
        if self.token is None:
            if not is_loopback(self.host):
                raise InputError(
                    f"host {self.host} lets other machines in, so a token is needed",
                    remedy="take the output of `openssl rand -hex 16`",
                    argument="token",
                )
        elif len(self.token) < _SHORTEST_TOKEN or not self.token.isascii() or not self.token.isprintable():
            raise InputError(
                f"the token must have at least {_SHORTEST_TOKEN} printable ASCII characters",
                remedy="take the output of `openssl rand -hex 16`",
            )


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("192.168.0.7"), is_loopback("")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
