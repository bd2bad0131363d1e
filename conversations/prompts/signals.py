"""Signals: what happens here that an app above may have to act on. It connects to them in `AppConfig.ready()`."""

from django.dispatch import Signal

released = Signal()
"""A worker let go of the turn whose id is `prompt`: it has ended, or waits. `alone`: it was not started together with
others. Sent in the thread that owns the worker's connection, where other turns wait for it; what a receiver raises is
logged."""
swept = Signal()
"""The parent of a worker has looked for work that nobody announced, which it does every few seconds; likewise."""
restored = Signal()
"""The site was restored from a backup of `time`, in words for people. What happened after that is unknown."""
