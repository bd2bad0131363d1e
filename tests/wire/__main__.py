"""`python -m tests.wire`: run the wire server as a process. Exits with 0 on SIGTERM and SIGINT."""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path

from agents.plugins.shell.tree import die_with_parent
from agents.providers.demo.rules import answer
from agents.providers.demo.server import serve
from tests.wire.app import Wire
from tests.wire.script import script_from_json

KEEP = 1000
"""Requests that are kept for GET /requests."""


def main() -> None:
    """Serve until a signal arrives or the parent process ends."""
    die_with_parent(signal.SIGTERM)
    parser = argparse.ArgumentParser(prog="python -m tests.wire", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1; 0 (the default) picks a free one")
    parser.add_argument("--port-file", type=Path, help="write the port to this file once connections are accepted")
    parser.add_argument("--script", type=Path, help="answer with the replies in this JSON file, see script.py")
    parser.add_argument("--log", type=Path, help="append each request to this file, as a line of JSON")
    options = parser.parse_args()
    script = script_from_json(json.loads(options.script.read_text())) if options.script else answer
    serve(Wire(script, KEEP, options.log), options.port, options.port_file)


if __name__ == "__main__":
    main()
