"""Secrets of runs and backups: an archive has none, and a run that comes back asks for nothing it cannot have."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from pytest_django.fixtures import Settings

from conversations.models import Prompt, RunSecret
from tests.agentsite.processes import free_port
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.workflows import vault
from tests.workflows.shop import installed
from tests.workflows.test_secrets import telling, to_the_end
from workflows.running import start_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann() -> User:
    return person("ann")


@pytest.fixture(autouse=True)
def _site(site: Site, monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path) -> Iterator[None]:
    for name, folder in {"AGENTSITE_DATA": "", "MEDIA_ROOT": "files", "AGENTSITE_WORKSPACES": "workspaces"}.items():
        (tmp_path / "site" / folder).mkdir(exist_ok=True)
        setattr(settings, name, tmp_path / "site" / folder)
    settings.PORT = free_port()
    monkeypatch.setattr(site.world, "tools", lambda: list(vault.TOOLS))
    vault.USED.clear()
    with installed(site, monkeypatch, workflows=vault.ALL):
        yield


def inside(archive: Path) -> dict[str, str]:
    """All files in an archive, as text."""
    with tarfile.open(archive) as opened:
        return {
            member.name: (opened.extractfile(member) or io.BytesIO()).read().decode(errors="replace")
            for member in opened.getmembers()
            if member.isfile()
        }


def test_a_backup_has_none_and_a_restored_run_says_so(
    ann: User, site: Site, tmp_path: Path, settings: Settings
) -> None:
    prompt: Prompt = start_run(vault.visit, ann, {"host": "office", "password": vault.LONG})
    site.works()
    (row,) = RunSecret.objects.all()
    archive = tmp_path / "backup.tar.gz"
    call_command("backup", str(archive), stdout=io.StringIO())
    found = inside(archive)
    assert telling(found, vault.LONG) == []
    assert telling(found, row.ciphertext) == []
    assert RunSecret.objects.count() == 1  # here it goes on
    call_command("restore", str(archive), replace=True, stdout=io.StringIO())
    assert not RunSecret.objects.exists()
    to_the_end(site, prompt, ann)
    assert vault.USED == [("office", vault.LONG)]  # before the backup
