"""Push: from a commit to every open page, socket and stream. The ledger is the mailbox; messages are only hints.

`watch` notices that something changed, `tailer` reads it once per process for the `topics` that are followed, `hub`
distributes it, `feed` is what one client gets, `consumers` are the sockets. `access` decides who may open one, and
for how long.
"""
