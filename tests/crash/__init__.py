"""Real processes, killed at many points: what the site promises must hold after each. `python -m tests.crash`."""
