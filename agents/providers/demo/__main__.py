"""`python -m agents.providers.demo`: run the demo model as a process. Exits with 0 on SIGTERM and SIGINT."""

from __future__ import annotations

import argparse
from pathlib import Path

from agents.providers.demo.app import app
from agents.providers.demo.server import serve


def main() -> None:
    """Serve until a signal arrives."""
    parser = argparse.ArgumentParser(prog="python -m agents.providers.demo", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port on 127.0.0.1; 0 (the default) picks a free one")
    parser.add_argument("--port-file", type=Path, help="write the port to this file once connections are accepted")
    options = parser.parse_args()
    serve(app, options.port, options.port_file)


if __name__ == "__main__":
    main()
