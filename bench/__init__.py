"""Benchmarks: ratios measured side by side in one run, written to RESULTS.md by `make bench`."""
