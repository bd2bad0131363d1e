"""Starts that cannot be: each ends with exit code 2 and one sentence that says what to do."""

import os
import re
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.agentsite.processes import free_port, run, variables


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PORT", "http", "PORT is 'http': write a number."),
        ("DEBUG", "perhaps", "DEBUG is 'perhaps': write 1 for yes or 0 for no."),
        ("HOST", "0.0.0.0", "ALLOWED_HOSTS"),
        ("HOST", "203.0.113.1", "correct HOST and PORT"),
        ("DATABASE_URL", "oracle://h/x", "DATABASE_URL is not valid"),
        ("DATABASE_URL", "postgres://127.0.0.1:1/x", "The database does not answer"),
        ("OPENAI_BASE_URL", "localhost:11434", "OPENAI_BASE_URL is not a valid URL"),
        ("AGENTSITE_MODEL_API", "soap", "write one of responses"),
        (
            "AGENTSITE_MODEL_NEEDS_USER",
            "mistral",
            "is 'mistral': write 1 for yes or 0 for no",
        ),
        ("AGENTSITE_RENEW_SECONDS", "20", "at most half of AGENTSITE_LEASE_SECONDS"),
        ("AGENTSITE_DATA", "/dev/null/data", "cannot be written"),
        ("SECRET_KEY", "k" * 31, "SECRET_KEY has 31 characters"),
    ],
)
def test_it_stops_with_one_sentence(name: str, value: str, says: str, tmp_path: Path) -> None:
    ended = run("manage.py", "serve", environment=variables(tmp_path, **{name: value}))
    assert ended.returncode == 2, ended.stderr
    assert says in ended.stderr
    assert ended.stderr.startswith("agentsite: ")
    assert ended.stderr.count("\n") == 1


def test_it_stops_where_the_port_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ended = run("manage.py", "serve", environment=variables(tmp_path, PORT=str(port)))
    assert ended.returncode == 2
    assert (
        ended.stderr == f"agentsite: Port {port} is in use: stop the program that uses it, or set PORT to a free one.\n"
    )


@pytest.mark.parametrize("process", [("-m", "agentsite.web"), ("manage.py", "worker")])
def test_no_process_starts_where_nothing_guards_the_ledger(process: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with closing(sqlite3.connect(tmp_path / "data" / "agentsite.sqlite3")) as database:
        database.execute("CREATE TABLE conversations_step (id)")
    ended = run(*process, environment=variables(tmp_path, PORT=str(free_port())))
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.startswith("agentsite: The ledger in database 'default' can be changed: the triggers ")
    assert ended.stderr.count("\n") == 1


def test_production_settings_pass_the_deployment_checks(tmp_path: Path) -> None:
    environment = variables(tmp_path, AGENTSITE_HTTPS="1", ALLOWED_HOSTS="agents.example")
    ended = run("manage.py", "check", "--deploy", environment=environment)
    assert ended.returncode == 0, ended.stderr
    assert re.findall(r"\(([a-z_]+\.\w+)\)", ended.stderr) == ([] if os.geteuid() else ["agents.W002"])


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ALLOWED_HOSTS", "agents.example,*", "ALLOWED_HOSTS=* lets a request choose the site's name"),
        ("HOST", "0.0.0.0", "HOST=0.0.0.0 without AGENTSITE_HTTPS: passwords and sessions cross the network"),
        ("HOST", "::", "HOST=:: without AGENTSITE_HTTPS"),
    ],
)
def test_an_open_site_is_warned_of(name: str, value: str, says: str, tmp_path: Path) -> None:
    """By the deployment checks, and when it starts: here on a port that is taken, so that nothing is opened."""
    environment = variables(tmp_path, **{"ALLOWED_HOSTS": "agents.example", name: value})
    assert says in run("manage.py", "check", "--deploy", environment=environment).stderr
    with socket.socket(socket.AF_INET6 if ":" in value else socket.AF_INET) as other:
        other.bind(("::1" if ":" in value else "127.0.0.1", 0))
        other.listen()
        environment["PORT"] = str(other.getsockname()[1])
        started = run("-m", "agentsite.web", environment=environment)
    assert started.returncode == 2
    assert says in started.stderr
