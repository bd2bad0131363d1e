"""A newcomer's first minute, timed: clone, `make run`, the login page, an answer, an approved command.

Each run begins with a fresh clone of the last commit. `--cold` uses empty package caches instead of the caches of `uv`
and `pip`; run it once without `--cold` to fill them. Seconds are counted from the start of `make run`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import support
from bench.processes import free_port
from bench.visitor import Visitor, text_of, until

HELLO = "hello from a newcomer"
STEPS = ("clone", "login page", "signed in", "first answer", "asked", "approved and done")


def main() -> None:
    """Print a table of seconds, one row for each run."""
    parser = argparse.ArgumentParser(prog="python -m bench.minute", description=__doc__)
    parser.add_argument("--ways", default="uv,pip", help="the installers to time: uv, pip, or both (%(default)s)")
    parser.add_argument("--cold", action="store_true", help="use empty package caches")
    parser.add_argument("--repository", default=str(support.ROOT), help="the repository to clone (this one)")
    parser.add_argument("--rounds", type=int, default=1, help="the number of runs with each installer (%(default)s)")
    options = parser.parse_args()
    rows = []
    for way in options.ways.split(",") * options.rounds:
        with tempfile.TemporaryDirectory(prefix="agentsite-minute-") as folder:
            rows.append((way, _minute(Path(folder), options.repository, way, cold=options.cold)))
    print(f"{'':6}" + "".join(f"{step:>19}" for step in STEPS))
    for way, seconds in rows:
        print(f"{way:6}" + "".join(f"{seconds[step]:>19.1f}" for step in STEPS))


def _minute(folder: Path, repository: str, way: str, *, cold: bool) -> dict[str, float]:
    """Return how long one newcomer waits for each step, in seconds."""
    began = time.monotonic()
    clone = folder / "agentsite"
    subprocess.run(["git", "clone", "--quiet", repository, clone], check=True)
    seconds = {"clone": time.monotonic() - began}
    port = free_port()
    visitor = Visitor(f"http://127.0.0.1:{port}")
    with _running(clone, _environment(folder, way, cold=cold) | {"PORT": str(port)}) as told:
        began = time.monotonic()
        until(visitor.answers)
        seconds["login page"] = time.monotonic() - began
        password = until(lambda: re.search(r"with the password (\S+)", "".join(told)))[1]
        page = visitor.sign_in("admin", password)
        seconds["signed in"] = time.monotonic() - began
        page = visitor.say(page, "help")
        _must(bool(text_of(visitor.wait_for_turn(page))), "there was no answer")
        seconds["first answer"] = time.monotonic() - began
        page = visitor.say(visitor.get(page.url), f"run echo {HELLO}")
        _must(visitor.wait_for_turn(page)["state"] == "waiting_for_approval", "no approval was requested")
        seconds["asked"] = time.monotonic() - began
        page = visitor.approve(page)
        turn = visitor.wait_for_turn(page)
        _must(turn["state"] == "completed" and HELLO in str(turn["outputs"]), "the command did not run")
        seconds["approved and done"] = time.monotonic() - began
    return seconds


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"The minute went wrong: {what}.")


def _environment(folder: Path, way: str, *, cold: bool) -> dict[str, str]:
    """A newcomer's: none of this site's settings, and `uv` on the path or not."""
    ours = ("AGENTSITE_", "OPENAI_", "DJANGO_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    for name in ("VIRTUAL_ENV", "DATABASE_URL", "SECRET_KEY", "HOST", "MAKEFLAGS", "PYTHONPATH"):
        variables.pop(name, None)
    variables["PATH"] = _path(folder / "bin", variables["PATH"], way)
    if cold:
        variables |= {"UV_CACHE_DIR": str(folder / "uv"), "PIP_CACHE_DIR": str(folder / "pip")}
    return variables


def _path(programs: Path, path: str, way: str) -> str:
    """The path without `uv`, and for the way of `uv` with it in front."""
    uv = shutil.which("uv", path=f"{path}:{support.ROOT}/.venv/bin")
    programs.mkdir()
    if way == "uv":
        _must(uv is not None, "there is no uv")
        (programs / "uv").symlink_to(str(uv))
        return f"{programs}:{path}"
    parts = []
    for number, part in enumerate(filter(None, path.split(":"))):
        has_it = (Path(part) / "uv").exists()
        parts.append(str(_without_uv(Path(part), programs / str(number))) if has_it else part)
    return ":".join(parts)


def _without_uv(folder: Path, copy: Path) -> Path:
    copy.mkdir()
    for program in folder.iterdir():
        if program.name not in ("uv", "uvx"):
            (copy / program.name).symlink_to(program)
    return copy


@contextmanager
def _running(clone: Path, variables: dict[str, str]) -> Iterator[list[str]]:
    """`make run` in the clone, with what it has printed so far; Ctrl-C at the end."""
    command = ["make", "run"]
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    process = subprocess.Popen(
        command, cwd=clone, env=variables, stdout=pipe, stderr=both, text=True, start_new_session=True
    )
    told: list[str] = []
    reader = threading.Thread(target=lambda: told.extend(process.stdout or ()), daemon=True)
    reader.start()
    try:
        yield told
    except BaseException:
        print("".join(told))
        raise
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=60)


if __name__ == "__main__":
    main()
