"""The worker: the background processes that run turns."""
