"""Durability: on the site's own connections, a commit survives a power failure."""

from __future__ import annotations

import sys
from subprocess import PIPE, Popen

from django.db import connection

from tests.agentsite.processes import free_port
from tests.crash.acting import MARKS, both, postgres
from tests.crash.processes import PATIENCE_SECONDS, kill_all
from tests.crash.site import Site
from tests.crash.workers import ROOT

pytestmark = MARKS


def setting(sql: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


@both
def test_a_commit_is_on_the_disk(site: Site) -> None:
    """CP40: `synchronous` is FULL (2), or `synchronous_commit` is on, on a connection as every process makes it."""
    if connection.vendor == "sqlite":
        assert setting("PRAGMA synchronous") == 2
    else:
        assert (setting("SHOW synchronous_commit"), setting("SHOW fsync")) == ("on", "on")


@postgres
def test_no_site_starts_where_a_commit_may_be_lost(site: Site) -> None:
    """CP40: it says what is off, and where to turn it on."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {connection.settings_dict['NAME']} SET synchronous_commit = off")
    connection.close()
    environment = site.environment(PORT=str(free_port()), AGENTSITE_DATA=str(site.folder / "data"))
    command = [sys.executable, "manage.py", "serve"]
    with Popen(command, cwd=ROOT, env=environment, stdout=PIPE, stderr=PIPE, text=True) as serve:
        try:
            said, error = serve.communicate(timeout=PATIENCE_SECONDS)
        finally:
            kill_all(site)
    assert (serve.returncode, said) == (2, "")
    assert error == (
        "agentsite: A power failure may lose commits of database 'default': synchronous_commit is off. Turn it on"
        " in postgresql.conf, or for the role or database that overrides it.\n"
    )
