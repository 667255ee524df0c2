"""Counters and histograms in Prometheus' text format (https://prometheus.io/docs/instrumenting/exposition_formats/)."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence

__all__ = ["CONTENT_TYPE", "Counter", "Gauge", "Histogram", "exposition"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Counter:
    """A number that only grows, one for each combination of labels.

    >>> served = Counter("served_total", "Requests served.", ("status",))
    >>> served.add("200"); served.add("200")
    >>> print("\\n".join(served.lines()))
    # HELP served_total Requests served.
    # TYPE served_total counter
    served_total{status="200"} 2
    """

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = ()) -> None:
        self.name, self.help, self.labels = name, help_text, tuple(labels)
        self._lock = threading.Lock()
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, *labels: str, amount: float = 1.0) -> None:
        with self._lock:
            self._values[labels] = self._values.get(labels, 0.0) + amount

    def lines(self) -> list[str]:
        with self._lock:
            values = sorted(self._values.items())
        return [*_head(self.name, self.help, "counter"), *(_sample(self.name, self.labels, *pair) for pair in values)]


class Gauge:
    """A number that is asked for when somebody looks.

    >>> print(Gauge("items", "Items in the index.", lambda: 3.0).lines()[-1])
    items 3
    """

    def __init__(self, name: str, help_text: str, value: Callable[[], float]) -> None:
        self.name, self.help, self.value = name, help_text, value

    def lines(self) -> list[str]:
        return [*_head(self.name, self.help, "gauge"), _sample(self.name, (), (), self.value())]


class Histogram:
    """How long things took, in seconds: cumulative buckets, their sum and their count, for each combination of labels.

    >>> took = Histogram("took_seconds", "Time.", bounds=(0.1, 1.0))
    >>> took.add(0.05); took.add(0.5)
    >>> print("\\n".join(took.lines()[2:]))
    took_seconds_bucket{le="0.1"} 1
    took_seconds_bucket{le="1"} 2
    took_seconds_bucket{le="+Inf"} 2
    took_seconds_sum 0.55
    took_seconds_count 2
    """

    def __init__(
        self, name: str, help_text: str, labels: Sequence[str] = (), bounds: Sequence[float] = _SECONDS
    ) -> None:
        self.name, self.help, self.labels, self.bounds = name, help_text, tuple(labels), tuple(bounds)
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, ...], list[int]] = {} if labels else {(): [0] * (len(bounds) + 1)}
        self._sums: dict[tuple[str, ...], float] = {}

    def add(self, value: float, *labels: str) -> None:
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(self.bounds) + 1))
            counts[bisect_left(self.bounds, value)] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self) -> list[str]:
        with self._lock:
            rows = sorted(
                (labels, list(counts), self._sums.get(labels, 0.0)) for labels, counts in self._counts.items()
            )
        out = _head(self.name, self.help, "histogram")
        edges = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        for labels, counts, total in rows:
            below = 0
            for edge, count in zip(edges, counts, strict=True):
                below += count
                out.append(_sample(f"{self.name}_bucket", (*self.labels, "le"), (*labels, edge), below))
            out.append(_sample(f"{self.name}_sum", self.labels, labels, total))
            out.append(_sample(f"{self.name}_count", self.labels, labels, below))
        return out


def exposition(measures: Sequence[Counter | Gauge | Histogram]) -> str:
    """All of them, as a scraper reads them."""
    return "".join(f"{line}\n" for measure in measures for line in measure.lines())


def _head(name: str, help_text: str, kind: str) -> list[str]:
    return [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]


def _sample(name: str, labels: Sequence[str], values: Sequence[str], number: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(value)}"' for label, value in zip(labels, values, strict=True))
    return f"{name}{{{pairs}}} {number:.12g}" if pairs else f"{name} {number:.12g}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
