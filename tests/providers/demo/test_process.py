"""The demo model, and the wire server around it, as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

SECONDS = 20
"""How long anything here may take on a busy machine."""

Start = Callable[..., tuple["subprocess.Popen[bytes]", str]]


def wait_for(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server and waits for its port file; gives the process and the base URL."""
    started: list[subprocess.Popen[bytes]] = []

    def start(module: str, *options: str | Path) -> tuple[subprocess.Popen[bytes], str]:
        port_file = tmp_path / "port"
        command = [sys.executable, "-W", "error", "-m", module, "--port-file", port_file, *options]
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        started.append(process)
        wait_for(lambda: port_file.exists() or process.poll() is not None)
        assert process.poll() is None, process.stderr and process.stderr.read()
        return process, f"http://127.0.0.1:{port_file.read_text()}"

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ask(url: str, text: str = "go") -> dict[str, Any]:
    answer = httpx2.post(f"{url}/v1/responses", json={"model": "m", "input": text}, headers={"Authorization": "secret"})
    result: dict[str, Any] = answer.json()
    return result


def test_a_script_from_a_file(start: Start, tmp_path: Path) -> None:
    """Answers by the file; tells what it was asked to whoever asks, and to its log, without keys."""
    script, log = tmp_path / "script.json", tmp_path / "log"
    script.write_text(json.dumps({"go": [{"text": "Gone."}]}))
    _, url = start("tests.wire", "--script", script, "--log", log)
    assert ask(url)["output"][0]["content"][0]["text"] == "Gone."
    assert ask(url, "else")["error"]["code"] == "script_ended"
    shown = httpx2.get(f"{url}/requests").json()
    assert [each["body"]["input"] for each in shown] == ["go", "else"]
    assert [json.loads(line) for line in log.read_text().splitlines()] == shown
    assert "secret" not in log.read_text()


@pytest.mark.parametrize("path", ["responses", "chat/completions"])
@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"model": "m", "input": 1, "messages": 1}'])
def test_a_request_that_the_shipped_demo_cannot_read_is_told(start: Start, path: str, content: bytes) -> None:
    """In the APIs' shape, and the next one is answered."""
    _, url = start("agents.providers.demo")
    refused = httpx2.post(f"{url}/v1/{path}", content=content)
    assert refused.status_code == 400
    assert "cannot read this request" in refused.json()["error"]["message"]
    assert ask(url)["status"] == "completed"


def test_the_shipped_demo_keeps_nothing(start: Start) -> None:
    """What people say to it is nobody else's business."""
    _, url = start("agents.providers.demo")
    assert "not a language model" in ask(url)["output"][0]["content"][0]["text"]
    assert httpx2.get(f"{url}/requests").status_code == 404


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(start: Start, tmp_path: Path, sig: signal.Signals) -> None:
    """Exit code 0 and nothing on stderr, in the middle of an answer too."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "Late.", "pause_seconds": 60}]))
    process, url = start("tests.wire", "--script", script)
    with httpx2.stream("POST", f"{url}/v1/responses", json={"model": "m", "input": "x", "stream": True}):
        process.send_signal(sig)
        assert process.wait(SECONDS) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    """However the parent ends."""
    port_file = tmp_path / "port"
    command = [sys.executable, "-m", "tests.wire", "--port-file", str(port_file)]
    program = f"import subprocess, time; print(subprocess.Popen({command!r}).pid, flush=True); time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    wait_for(port_file.exists)
    parent.kill()
    parent.communicate()
    wait_for(lambda: not alive(child))


def alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has waited for yet does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_taken_port_is_told(start: Start) -> None:
    """Not waited for."""
    _, url = start("agents.providers.demo")
    port = url.rsplit(":", 1)[1]
    taken = subprocess.run(
        [sys.executable, "-m", "agents.providers.demo", "--port", port], capture_output=True, check=False
    )
    assert taken.returncode == 1
    assert b"Address already in use" in taken.stderr
