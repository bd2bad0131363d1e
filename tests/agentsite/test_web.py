import signal
import socket
from pathlib import Path

import pytest

from tests.agentsite.processes import connect, free_port, processes_of, run, started, variables, wait_for

# The web server with an application that answers its first bytes and then never ends, as a stream of events does.
ENDLESS = """
import asyncio
import agentsite.asgi
import agentsite.web

async def endless(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"begun", "more_body": True})
    await asyncio.Event().wait()

agentsite.asgi.application = endless
agentsite.web.run()
"""


def ask(port: int, path: str) -> socket.socket:
    connection = connect(port)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def receive_until(connection: socket.socket, wanted: bytes) -> bytes:
    received = b""

    def more() -> bool:
        nonlocal received
        received += connection.recv(65536)
        return wanted in received

    wait_for(more)
    return received


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_0_while_a_response_is_open(number: signal.Signals, tmp_path: Path) -> None:
    port = free_port()
    environment = variables(tmp_path / "data", PORT=str(port))
    with started("-c", ENDLESS, environment=environment, log=tmp_path / "log") as web, ask(port, "/") as connection:
        receive_until(connection, b"begun")
        web.send_signal(number)
        assert web.wait(timeout=30) == 0
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_it_serves_static_files_without_debug(tmp_path: Path) -> None:
    port = free_port()
    environment = variables(tmp_path / "data", PORT=str(port))
    with (
        started("-m", "agentsite.web", environment=environment, log=tmp_path / "log"),
        ask(port, "/static/admin/css/base.css") as connection,
    ):
        answer = receive_until(connection, b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"nosniff" in answer
    assert b"no-cache" in answer


def test_it_serves_while_the_database_is_away(tmp_path: Path) -> None:
    """Pages are there to say so; what could not be looked at is in the log."""
    port = free_port()
    environment = variables(tmp_path / "data", PORT=str(port), DATABASE_URL="postgres://127.0.0.1:1/x")
    with (
        started("-m", "agentsite.web", environment=environment, log=tmp_path / "log"),
        ask(port, "/healthz") as connection,
    ):
        assert receive_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 503")
    assert "cannot check that the database keeps ledgers safe" in (tmp_path / "log").read_text()


def test_several_share_its_port_and_end_with_it(tmp_path: Path) -> None:
    """Also while a response is open."""
    port = free_port()
    environment = variables(tmp_path / "data", PORT=str(port), AGENTSITE_WEB="2")
    with (
        started("-m", "agentsite.web", environment=environment, log=tmp_path / "log") as web,
        ask(port, "/login/") as connection,
    ):
        assert receive_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        assert len(processes_of(tmp_path / "data")) == 3
        web.terminate()
        assert web.wait(timeout=30) == 0
        wait_for(lambda: not processes_of(tmp_path / "data"))


def test_it_says_that_its_port_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        ended = run("-m", "agentsite.web", environment=variables(tmp_path, PORT=str(other.getsockname()[1])))
    assert ended.returncode == 2
    assert "set PORT" in ended.stderr
    assert "Traceback" not in ended.stderr
