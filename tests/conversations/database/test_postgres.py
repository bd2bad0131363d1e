"""PostgreSQL's settings as they really apply (CP40)."""

import os
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.core import checks

from tests.agentsite.processes import free_port, run, variables
from tests.conversations.recorded import meddle

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


def told() -> list[str]:
    found = checks.run_checks(tags=[checks.Tags.database], databases=["default"])
    return [error.msg for error in found if error.id == "conversations.E002"]


@pytest.mark.parametrize("value", ["on", "local", "remote_apply"])
def test_a_commit_that_waits_for_its_own_disk_is_durable(value: str) -> None:
    meddle(f"SET LOCAL synchronous_commit = {value}")
    assert told() == []


def test_a_commit_that_does_not_wait_is_an_error() -> None:
    meddle("SET LOCAL synchronous_commit = off")
    assert told() == ["A power failure may lose commits of database 'default': synchronous_commit is off."]


@pytest.mark.parametrize("process", [("-m", "agentsite.web"), ("manage.py", "worker")])
def test_no_process_starts_where_commits_do_not_wait(process: tuple[str, ...], tmp_path: Path) -> None:
    """Not only `serve`, which looks before it starts them."""
    server = urlsplit(os.environ["DATABASE_URL"])
    url = urlunsplit(server._replace(path="/postgres", query="options=-c%20synchronous_commit%3Doff"))
    ended = run(*process, environment=variables(tmp_path, PORT=str(free_port()), DATABASE_URL=url))
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.startswith("agentsite: A power failure may lose commits of database 'default': ")
    assert ended.stderr.count("\n") == 1
