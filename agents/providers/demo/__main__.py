"""`python -m agents.providers.demo`: run the demo model as a process. Exits with 0 on SIGTERM and SIGINT."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from agents.providers.demo.app import Wire
from agents.providers.demo.parent import die_with_parent
from agents.providers.demo.rules import answer
from agents.providers.demo.script import script_from_json
from agents.providers.demo.server import listen, uvicorn_server

SCRIPTED_KEEP = 1000
"""Requests that a scripted server keeps for GET /requests. Without a script it keeps nothing that people said."""


def main() -> None:
    """Serve until a signal arrives or the parent process ends."""
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda *_: sys.exit(0))  # uvicorn stops first, then raises the signal again
    die_with_parent()
    options = _options()
    script = script_from_json(json.loads(options.script.read_text())) if options.script else answer
    app = Wire(script, SCRIPTED_KEEP if options.script else 0, options.log)
    sock = listen(options.port)
    if options.port_file:
        _write(options.port_file, str(sock.getsockname()[1]))
    uvicorn_server(app).run(sockets=[sock])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m agents.providers.demo", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1; 0 (the default) picks a free one")
    parser.add_argument("--port-file", type=Path, help="write the port to this file once connections are accepted")
    parser.add_argument("--script", type=Path, help="answer with the replies in this JSON file, see script.py")
    parser.add_argument("--log", type=Path, help="append each request to this file, as a line of JSON")
    return parser.parse_args()


def _write(path: Path, text: str) -> None:
    """Write the file atomically: whoever waits for it sees all of it or nothing."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(path)


if __name__ == "__main__":
    main()
