"""The gate: every request passes it on the way in, and every answer on the way out.

It checks the host, token, rate and size of requests, and adds headers to answers. It is plain ASGI middleware, so that
no endpoint can forget a check.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from halation.serve._refusals import Refusal, refusal_response
from halation.serve._server_metrics import ServerMetrics
from halation.serve._settings import ServeSettings, is_loopback
from halation.serve._workers import ClientGone

__all__ = ["COOKIE", "Gate", "same_secret", "session_value"]

COOKIE = "halation_session"
_OPEN = ("/", "/health", "/session", "/openapi.json")  # no token needed: nothing here comes from the index
_EXPENSIVE = ("/search", "/search/image", "/session")  # limited by the rate of searches
_CLIENTS = 10_000  # remembered at once; the one idle for longest is forgotten first
_CHEAPER = 20  # times the rate of searches, for other requests: one answer shows dozens of pictures
_log = logging.getLogger("halation.serve")

_HEADERS = {
    # no inline scripts or styles, nothing from other servers; blob: shows a picture that was just dropped
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def session_value(token: str) -> str:
    """The value of the page's cookie: it proves the token without containing it."""
    return hmac.new(token.encode(), b"halation session", hashlib.sha256).hexdigest()


class RateLimiter:
    """Token buckets: `rate` requests per second on average, `burst` at once. Rate 0 means no limit.

    >>> now = [0.0]
    >>> rates = RateLimiter(rate=2.0, burst=2, clock=lambda: now[0])
    >>> [rates.wait("a"), rates.wait("a"), rates.wait("a"), rates.wait("b")]
    [0.0, 0.0, 0.5, 0.0]
    >>> now[0] = 0.5
    >>> rates.wait("a")
    0.0
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client: (tokens left, time)

    def wait(self, client: str) -> float:
        """Take a token and return 0.0; without a token, return the seconds until there is one."""
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


class Gate:
    """ASGI middleware that checks requests, adds headers to answers, turns errors into JSON and counts both."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: ServerMetrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        known = settings.allowed_hosts
        # None: any host name will do, because a token is required, and other people's pages do not have it
        self.names = {name.lower() for name in known} if known or is_loopback(settings.host) else None
        self.searches = RateLimiter(settings.rate, settings.burst)
        self.explanations = RateLimiter(settings.explain_rate, settings.explain_burst)
        self.others = RateLimiter(settings.rate * _CHEAPER, settings.burst * _CHEAPER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0
        receive = _bounded(receive, self._limit(scope["path"]), self.settings.receive_timeout)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                extra = {**_HEADERS, "cache-control": "no-store"}
                message["headers"] = [
                    *message["headers"],
                    *((n.encode(), v.encode()) for n, v in extra.items() if n.encode() not in present),
                ]
            await send(message)

        try:
            self._check(scope)
            _keep_encoded_ids(scope)
            await self.app(scope, receive, send_with_headers)
        except Refusal as refusal:
            await refusal_response(refusal, self.metrics)(scope, receive, send_with_headers)
        except ClientGone:
            status = 499  # nginx's number for it; only the metrics show it
        except Exception:
            _log.exception("%s %s failed", scope["method"], scope["path"])
            if status == 0:
                message = "the server failed to answer; its log says why. Other requests are not affected"
                await refusal_response(Refusal(500, message, "bug"), self.metrics)(scope, receive, send_with_headers)
        finally:
            route = getattr(scope.get("route"), "path", "other")  # the template: with ids, every item would be a label
            self.metrics.requests.labels(route, _known_method(scope["method"]), str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - started)

    def _limit(self, path: str) -> int:
        return self.settings.max_upload if path == "/search/image" else self.settings.max_body

    def _check(self, scope: Scope) -> None:
        """Raise a `Refusal` for a request that must not reach the application."""
        headers, path = Headers(scope=scope), scope["path"]
        self._check_origin(scope["method"], headers)
        self._check_rate(scope, path)
        if path not in _OPEN and not path.startswith("/static/"):
            self._check_token(headers)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._limit(path):
            raise _too_large(self._limit(path))

    def _check_origin(self, method: str, headers: Headers) -> None:
        """Refuse requests from other web pages, including pages whose host name was made to point here."""
        host = _host(headers.get("host", ""))
        if self.names is not None and host.lower() not in self.names and not is_loopback(host):
            message = (
                "this server answers to its own name only; open it at localhost or 127.0.0.1 (behind a "
                "proxy, its name must be among the allowed hosts)"
            )
            raise Refusal(421, message, "host")
        site = headers.get("sec-fetch-site", "none")  # only browsers send it
        if method not in ("GET", "HEAD") and site not in ("same-origin", "none"):
            raise Refusal(403, "requests from other web pages are not served", "cross_site")

    def _check_rate(self, scope: Scope, path: str) -> None:
        rates, what = self._bucket(path)
        seconds = rates.wait(_client_key(scope["client"][0] if scope.get("client") else ""))
        if seconds:
            raise Refusal(
                429,
                f"too many {what}: this server takes {rates.rate:g} per second from one client; "
                f"try again in {math.ceil(seconds)} s",
                "rate",
                {"retry-after": str(math.ceil(seconds))},
            )

    def _bucket(self, path: str) -> tuple[RateLimiter, str]:
        """The rate limiter for a path, and the noun for what it counts."""
        if path == "/explain":
            return self.explanations, "explanations"
        expensive = path in _EXPENSIVE or path.endswith("/alike")
        return (self.searches if expensive else self.others), "requests"

    def _check_token(self, headers: Headers) -> None:
        token = self.settings.token
        if token is None:
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and same_secret(given.strip(), token):
            return
        if same_secret(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""), session_value(token)):
            return
        raise Refusal(
            401,
            'this server needs a token: send it as "Authorization: Bearer TOKEN"',
            "token",
            {"www-authenticate": "Bearer"},
        )


def _client_key(address: str) -> str:
    """The key that counts as one client: an IPv4 address, or the /64 network of an IPv6 address.

    One IPv6 client can use every address of its network.

    >>> _client_key("10.0.0.7"), _client_key("2001:db8:1:2:3:4:5:6"), _client_key("testclient")
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


def same_secret(given: str, wanted: str) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def _host(header: str) -> str:
    """The name in a Host header, without port and brackets.

    >>> _host("localhost:8000"), _host("[::1]:8000"), _host("127.0.0.1"), _host("localhost.evil.example:80")
    ('localhost', '::1', '127.0.0.1', 'localhost.evil.example')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _keep_encoded_ids(scope: Scope) -> None:
    """Keep the ids of `/items/…` percent-encoded for routing, so that a slash inside an id does not split the path."""
    raw = scope.get("raw_path")
    if raw and scope["path"].startswith("/items/"):
        scope["path"] = raw.decode("latin-1")


def _known_method(method: str) -> str:
    return method if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS") else "other"


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"the request is too large; this server takes at most {limit:,} bytes", "too_large")


def _bounded(receive: Receive, limit: int, seconds: float) -> Receive:
    """`receive` with limits: a body that is too large or takes too long raises a `Refusal`."""
    seen, ended, deadline = 0, False, time.monotonic() + seconds

    async def bounded() -> Message:
        nonlocal seen, ended
        if ended:
            return await receive()  # only "the client has gone" can come now
        try:
            message = await asyncio.wait_for(receive(), max(0.0, deadline - time.monotonic()))
        except asyncio.TimeoutError:
            raise Refusal(408, f"the request did not arrive completely within {seconds:g} seconds", "slow") from None
        seen += len(message.get("body", b""))
        ended = not message.get("more_body", False)
        if seen > limit:
            raise _too_large(limit)
        return message

    return bounded
