"""What the guards are worth: each is removed once, and some test must turn red. `python -m tests.mutations`."""
