"""Shell commands: run in the conversation's own folder, in a sandbox if the machine allows it.

`tools` declares the tool, `sandbox` builds the sandbox and `probe` finds out whether it works here. `process` is the
worker's side of a running command, and `supervise` is the small process between the two that ends everything the
command started; `limits` and `user` are what the command may use, and who it is. `supervise` and its imports use only
the standard library, and this file imports nothing, so that the process starts in a few milliseconds.
"""
