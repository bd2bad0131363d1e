"""Push: from a commit to every open page, socket and stream. The ledger is the mailbox; messages are only hints.

`watch` says where something changed, `tailer` reads it once per process, `topics` what is followed, `hub` hands it on,
`feed` is one client's way through it, `consumers` the sockets; `access` who may open one, and for how long.
"""
