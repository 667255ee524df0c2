"""What a server says about itself at /metrics."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from halation.serve._measures import Counter, Gauge, Histogram, exposition

__all__ = ["ServerMetrics"]


class ServerMetrics:
    """Every measure of one server; `text()` is what /metrics answers."""

    def __init__(self) -> None:
        self.requests = Counter("halation_requests_total", "Requests answered.", ("route", "method", "status"))
        self.seconds = Histogram("halation_request_seconds", "From a request to its answer, by route.", ("route",))
        self.refused = Counter("halation_refused_total", "Requests refused, by reason.", ("reason",))
        self.encode = Histogram("halation_encode_seconds", "Encoding a query, by its kind.", ("kind",))
        self.search = Histogram("halation_search_seconds", "Searching the index for an encoded query.", ("kind",))
        self.nothing = Counter("halation_nothing_matches_total", "Answers that said that nothing matches.")
        self.reloads = Counter("halation_reloads_total", "Reloads of the index, by how they ended.", ("ended",))
        self.thumbnails = Counter(
            "halation_thumbnails_total", "Thumbnails asked for, by where they came from.", ("from",)
        )
        self.gauges: list[Gauge] = []
        started = time.time()
        self.gauges.append(Gauge("process_start_time_seconds", "When the process started.", lambda: started))
        self.gauges.append(Gauge("process_resident_memory_bytes", "Memory in use.", resident_bytes))

    def text(self) -> str:
        counted = (
            self.requests, self.seconds, self.refused, self.encode, self.search, self.nothing, self.reloads,
            self.thumbnails,
        )  # fmt: skip
        return exposition([*counted, *self.gauges])


def resident_bytes() -> float:
    """Memory of this process; where /proc is missing, its peak."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return float(statm.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)
