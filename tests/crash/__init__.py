"""Crash tests: real processes, killed at many points. The site must keep its promises. `python -m tests.crash`."""
