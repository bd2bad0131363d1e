"""Benchmarks: each module is a command that prints a table. Run them as `python -m bench.round`."""
