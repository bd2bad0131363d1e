"""The scripted model server, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.engine.ledger import JSON


@dataclass(frozen=True)
class Model:
    """The model server: its URL, and the file that gets a line for each request."""

    url: str
    log: Path


@contextmanager
def serving(script: JSON, folder: Path, name: str) -> Iterator[Model]:
    """Serve this script until the end of the block."""
    files = {kind: folder / f"{name}.{kind}" for kind in ("script", "log", "port")}
    files["script"].write_text(json.dumps(script))
    files["log"].touch()
    options = [f"--{kind}={file}" for kind, file in files.items() if kind != "port"]
    command = [sys.executable, "-m", "tests.wire", *options, f"--port-file={files['port']}"]
    process = subprocess.Popen(command)
    try:
        while not files["port"].exists():
            if process.poll() is not None:
                raise RuntimeError("the model server did not start")
            time.sleep(0.02)
        yield Model(f"http://127.0.0.1:{files['port'].read_text()}/v1", files["log"])
    finally:
        process.terminate()
        process.wait()
