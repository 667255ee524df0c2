"""The tables of the benchmarks."""

from __future__ import annotations

from bench.results import Row, merged


def test_a_part_replaces_its_own_table_and_leaves_the_others() -> None:
    first = merged("", [Row("index", "latency", "2 ms"), Row("index", "recall", "0.99"), Row("serving", "p50", "5 ms")])
    second = merged(first, [Row("index", "latency", "1 ms", "3 ms", 3.0, 2.0)])
    assert first.count("## ") == second.count("## ") == 2
    assert "| latency | 1 ms | 3 ms | 3.00 × | ≥ 2 × met |" in second
    assert "2 ms" not in second and "recall" not in second
    assert "| p50 | 5 ms |  |  |  |" in second
    assert second.index("## index") < second.index("## serving")  # where it was
    assert merged(second, []) == second
