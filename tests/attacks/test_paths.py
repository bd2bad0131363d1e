"""Paths that lead out of the folders of static files, or nowhere, against a running site."""

from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

import pytest

from tests.agentsite.processes import connect, free_port, started, variables

OUT = [
    "/static/../..",
    "/static/../../agentsite/settings.py",
    "/static/..%2f..%2fagentsite/settings.py",
    "/static/%2e%2e/%2e%2e/",
    "/static/%2e%2e%2f%2e%2e%2fmanage.py",
    "/static/..\\..\\manage.py",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "/static/conversations/../../../../manage.py",
    "/static/conversations/%00",
    "/static/%00/../x.css",
    "/static/conversations/site.css%00.png",
    "/static/%ff%fe",
    "/static/%252e%252e/%252e%252e",
    "/static/" + "a" * 5000,
    "/static/" + "a/" * 2000,
    "/static/" + "../" * 2000,
    "/static/conversations",
    "/static/",
    "/static/conversations/site.css/../site.css/..",
    "/static/x?%00=../..",
    "/../../etc/passwd",
    "/files/%00/",
    "/files/%00/view/",
    "/files/" + "9" * 5000 + "/frame/",
    "/c/1/images/%00",
    "/c/1/images/../../../../etc/passwd",
    "/c/1/images/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/c/1/images/%ff%fe",
    "/c/1/images/" + "a/" * 2000,
    "/c/%00/",
    "/c/" + "9" * 5000 + "/",
    "/admin/../../etc/passwd",
]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paths") / "log"


@pytest.fixture(scope="module")
def port(log: Path) -> Iterator[int]:
    port = free_port()
    environment = variables(log.parent / "data", PORT=str(port))
    with started("-m", "agentsite.web", environment=environment, log=log):
        yield port


@pytest.mark.parametrize("path", OUT, ids=lambda path: path[:60])
def test_it_is_not_there(port: int, log: Path, path: str) -> None:
    """Each is 404, or the way to sign in, and never an error of the site."""
    before = len(log.read_text())
    with connect(port) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin-1"))
        with HTTPResponse(client) as answer:
            answer.begin()
            text = answer.read()
            assert answer.status in ((404,) if path.startswith("/static") else (302, 404))
    assert b"SECRET_KEY" not in text
    assert b"root:" not in text
    assert "Traceback" not in log.read_text()[before:]
