"""The processes of the contenders, and the environment of LangGraph's."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import support

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
OURS = ("ours sqlite", "ours postgres")
LANGGRAPH = ("langgraph sqlite", "langgraph postgres")
KEEP_NOTHING = ("sdk", "raw")
NAMES = (*OURS, *LANGGRAPH, *KEEP_NOTHING)


class Contender:
    """A process that does what it is asked, one thing at a time."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command, cwd=support.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def do(self, what: str, **how: Any) -> dict[str, Any]:
        """Have it do this, and return its figures."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"do": what, **how}) + "\n")
        self._process.stdin.flush()
        if answer := self._process.stdout.readline():
            return dict(json.loads(answer))
        raise SystemExit(f"{self.name} ended with {self._process.wait()} instead of: {what} {how}.")

    def end(self) -> None:
        """End its input, and wait for its end."""
        with self._process:  # closes its pipes
            pass


@contextmanager
def contender(name: str, base_url: str, venv: Path) -> Iterator[Contender]:
    """The contender of this name, until the end of the block."""
    with ExitStack() as stack:
        started = Contender(name, _COMMANDS[name](stack, base_url, venv))
        stack.callback(started.end)
        yield started


def _ours(database: str) -> Callable[[ExitStack, str, Path], list[str]]:
    return lambda stack, base_url, venv: [sys.executable, "-m", "bench.peers.ours", base_url, database]


def _langgraph(database: Callable[[ExitStack], str]) -> Callable[[ExitStack, str, Path], list[str]]:
    return lambda stack, base_url, venv: [
        str(_python(venv)), "-m", "bench.peers.with_langgraph", base_url, database(stack),
    ]  # fmt: skip


def _file(stack: ExitStack) -> str:
    return f"{stack.enter_context(tempfile.TemporaryDirectory())}/langgraph.sqlite3"


_COMMANDS: dict[str, Callable[[ExitStack, str, Path], list[str]]] = {
    "ours sqlite": _ours("sqlite"),
    "ours postgres": _ours("postgres"),
    "langgraph sqlite": _langgraph(_file),
    "langgraph postgres": _langgraph(lambda stack: stack.enter_context(support.postgres())),
    "sdk": lambda stack, base_url, venv: [sys.executable, "-m", "bench.peers.with_sdk", base_url],
    "raw": lambda stack, base_url, venv: [sys.executable, "-m", "bench.peers.raw", base_url],
}


def _python(venv: Path) -> Path:
    """Return the interpreter of LangGraph's environment, which is made if it is not as the requirements say.

    Raises CalledProcessError if it cannot be made.
    """
    python, made_of = venv / "bin" / "python", venv / REQUIREMENTS.name
    if not made_of.exists() or made_of.read_bytes() != REQUIREMENTS.read_bytes():
        print(f"Installing LangGraph in {venv} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
        pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(REQUIREMENTS)], check=True)
        made_of.write_bytes(REQUIREMENTS.read_bytes())
    return python
