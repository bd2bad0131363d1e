"""Running a command in a conversation's own folder, boxed as far as the machine allows.

`tools` declares it, `sandbox` builds the box, `process` is the worker's side of a running command, and `supervise` the
small process between the two that ends everything the command started. `supervise` and what it imports use the
standard library alone, and nothing is imported here: that process starts in a few milliseconds.
"""
