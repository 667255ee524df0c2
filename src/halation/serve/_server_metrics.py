"""The server's own metrics, served at /metrics in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

__all__ = ["CONTENT_TYPE", "ServerMetrics"]

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class ServerMetrics:
    """All metrics of one server, in their own registry, so that two servers in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = self._counter("halation_requests_total", "Requests answered.", "route", "method", "status")
        self.seconds = self._histogram("halation_request_seconds", "From a request to its answer, by route.", "route")
        self.refused = self._counter("halation_refused_total", "Requests refused, by reason.", "reason")
        self.encode = self._histogram("halation_encode_seconds", "Encoding a query, by its kind.", "kind")
        self.search = self._histogram("halation_search_seconds", "Searching the index for an encoded query.", "kind")
        self.nothing = self._counter("halation_nothing_matches_total", "Answers saying that nothing matches.")
        self.unsure = self._counter("halation_unsure_total", "Answers that are not sure whether anything matches.")
        self.reloads = self._counter("halation_reloads_total", "Reloads of the index, by how they ended.", "ended")
        self.thumbnails = self._counter(
            "halation_thumbnails_total", "Thumbnails sent, by where they came from.", "from"
        )

    def gauge(self, name: str, help_text: str, value: Callable[[], float]) -> None:
        """Add a number that is computed whenever /metrics is read."""
        Gauge(name, help_text, registry=self.registry).set_function(value)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(name, help_text, labels, registry=self.registry)

    def _histogram(self, name: str, help_text: str, *labels: str) -> Histogram:
        return Histogram(name, help_text, labels, buckets=_SECONDS, registry=self.registry)
