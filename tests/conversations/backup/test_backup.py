"""`manage.py backup` and `restore`: what comes back, what is refused, and a past that nothing repeats (CP39)."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents.models import Blueprint, Memory, SearchedWord, WordCount
from agents.plugins.blueprints import catalogue
from agents.plugins.memory import keeping
from conversations.approvals.decisions import decide
from conversations.backup import databases
from conversations.backup.archive import IN_MEMORY
from conversations.erasure.conversations import erase
from conversations.erasure.people import erase_user
from conversations.erasure.steps import redact
from conversations.files.pending import discard, keep
from conversations.files.removal import remove_tree
from conversations.files.uploads import Upload
from conversations.ledger.claims import claimable
from conversations.models import Conversation, File, GateState, Output, PendingFile, Prompt, Step, Worker
from conversations.worker import hosts
from tests.agentsite.processes import free_port
from tests.conversations.recorded import MIXED, ONE_GATE, TWO_GATES, Site, pending, taken
from tests.conversations.support import person
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _folders(settings: Settings, tmp_path: Path) -> None:
    """A site with files and workspaces of its own, where no web server answers."""
    if connection.vendor == "postgresql" and not shutil.which("pg_dump"):
        pytest.fail("This test needs PostgreSQL's client programs.", pytrace=False)
    for name, folder in {"AGENTSITE_DATA": "", "MEDIA_ROOT": "files", "AGENTSITE_WORKSPACES": "workspaces"}.items():
        (tmp_path / "site" / folder).mkdir(exist_ok=True)
        setattr(settings, name, tmp_path / "site" / folder)
    settings.PORT = free_port()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "backup.tar.gz"


@pytest.fixture
def ann() -> User:
    return person("ann")


def told(*command: object, **options: Any) -> str:
    out = io.StringIO()
    call_command(*map(str, command), stdout=out, **options)
    return out.getvalue()


def workspace(settings: Settings, conversation: Conversation) -> Path:
    folder = Path(settings.AGENTSITE_WORKSPACES) / str(conversation.pk)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def test_a_site_comes_back_as_it_was(site: Site, ann: User, archive: Path, settings: Settings) -> None:
    """People, conversations, files that tools made or wait for a run, and workspaces; what came later is gone."""
    prompt = site.ended(ann, *MIXED)
    folder = workspace(settings, prompt.conversation)
    (folder / "src").mkdir()
    (folder / "src" / "run.sh").write_text("echo")
    (folder / "src" / "run.sh").chmod(0o700)
    (folder / "again").symlink_to("src/run.sh")
    waits = keep(ann, Upload.of(SimpleUploadedFile("sales.csv", b"1,2")))
    before = (Step.objects.count(), Output.objects.count(), Conversation.objects.get().head)
    assert "1 conversation," in told("backup", archive)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600

    site.ended(ann, says("Later."))
    assert discard(ann, waits.token)
    (folder / "src" / "run.sh").write_text("changed")
    (folder / "later").write_text("x")
    person("late")
    assert "clean" in told("restore", archive, replace=True)

    assert (Step.objects.count(), Output.objects.count(), Conversation.objects.get().head) == before
    with File.objects.get().content.open() as content:
        assert content.read() == b"content"
    with PendingFile.objects.get(token=waits.token).content.open() as content:
        assert content.read() == b"1,2"
    assert list(User.objects.values_list("username", flat=True)) == ["ann"]
    assert sorted(path.name for path in folder.iterdir()) == ["again", "src"]
    assert (folder / "again").readlink() == Path("src/run.sh")
    assert (folder / "src" / "run.sh").read_text() == "echo"
    assert os.access(folder / "src" / "run.sh", os.X_OK)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    further = site.ended(ann, *MIXED, says("It goes on."), conversation=Conversation.objects.get())
    assert further.state == "completed"


Indexed = tuple[list[tuple[str, str, int, bool]], list[tuple[str, str, int]]]


def indexed() -> Indexed:
    """All words that the search goes by, and their counts."""
    words = SearchedWord.objects.order_by("pk").values_list("collection", "word", "row", "in_title")
    return list(words), list(WordCount.objects.order_by("pk").values_list("collection", "word", "rows"))


def found(user: User, text: str) -> tuple[list[str], list[str]]:
    """The names of the blueprints and the texts of the memories that the agent of this person is told of for a text."""
    seen = catalogue.read_catalogue().seen_by(catalogue.groups_of(user.pk))
    blueprints = catalogue.read(tuple(catalogue.find(text, seen.ids, 1500)))
    return [each.name for each in blueprints], [each.text for each in keeping.find(user.pk, text)]


def test_blueprints_and_memories_come_back_and_are_found(ann: User, archive: Path) -> None:
    """With the groups, the pins and the words of then; what came later, or was changed, is found by nothing of it."""
    kim, support = person("kim"), Group.objects.create(name="Support")
    ann.groups.add(support)
    usual, inner, off = (
        Blueprint.objects.create(name=name, when=f"Somebody asks for {name}.", text="Ask first.", enabled=enabled)
        for name, enabled in (("Refunds", True), ("Refunds of 退款", True), ("Refunds off", False))
    )
    inner.groups.add(support)
    tea = keeping.save(ann.pk, "Ann's refund is paid into her Café.", pinned=True).memory
    keeping.save(kim.pk, "Kim's refund is late.")
    keeping.switch(kim.pk, on=False)
    told_of = {user.pk: found(user, "a refund") for user in (ann, kim)}
    assert told_of == {
        ann.pk: (["Refunds", "Refunds of 退款"], [tea.text]),
        kim.pk: (["Refunds"], ["Kim's refund is late."]),
    }
    before = indexed()
    told("backup", archive)

    keeping.forget(ann.pk, tea.pk)
    keeping.save(ann.pk, "Ann's bicycle is red.")
    keeping.switch(kim.pk, on=True)
    usual.name = usual.when = "Taxes"
    usual.save()
    off.enabled = True
    off.save()
    inner.delete()
    Blueprint.objects.create(name="Bicycles", when="Somebody asks for a bicycle.", text="Ask first.")
    assert "clean" in told("restore", archive, replace=True)

    assert indexed() == before
    assert {user.pk: found(user, "a refund") for user in (ann, kim)} == told_of
    assert found(ann, "退款 cafe") == (["Refunds of 退款"], [tea.text])
    assert found(ann, "taxes bicycle") == ([], [])
    assert (keeping.is_on(ann.pk), keeping.is_on(kim.pk)) == (True, False)
    assert Memory.objects.get(user=ann).pinned
    assert keeping.save(ann.pk, "Ann's bicycle is red.").new
    assert found(ann, "bicycle") == ([], ["Ann's bicycle is red."])


def test_a_site_with_another_language_finds_what_a_backup_brought_by_its_own(
    ann: User, archive: Path, settings: Settings
) -> None:
    """The words in the backup are those of then: a restore writes them anew, as they are looked for now."""
    keeping.save(ann.pk, "Die Rechnungen sind rot.")
    told("backup", archive)
    settings.AGENTSITE_SEARCH_LANGUAGE = "german"
    assert "clean" in told("restore", archive, replace=True)
    assert found(ann, "Rechnung") == ([], ["Die Rechnungen sind rot."])


def test_what_was_approved_and_may_have_run_is_asked_about_and_runs_when_told(
    site: Site, ann: User, archive: Path
) -> None:
    """CP39: approved before the backup, run after it. It does not run by itself; "run again" runs it once."""
    prompt = site.runs(ann, *ONE_GATE)
    site.approves(prompt, ann)
    told("backup", archive)
    site.works()
    assert site.world.times == {("shell.run", "a"): 1}
    assert "Calls that may have run after the backup: 1." in told("restore", archive, replace=True)

    site.works()
    card = pending(prompt)[0]
    assert (card.ask, site.world.times) == ("interrupted", {("shell.run", "a"): 1})
    assert "restored from a backup" in card.reason
    decide(card.pk, ann, "run_again", digest=card.digest, via="page")
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, site.world.times) == ("completed", {("shell.run", "a"): 2})
    told("verify_ledger", all=True)


def test_what_ran_is_not_run_again_where_the_owner_says_so(site: Site, ann: User, archive: Path) -> None:
    """CP39: one of two was approved and the turn still waited; what was not decided asks as before, with a warning."""
    prompt = site.runs(ann, *TWO_GATES)
    first, second = pending(prompt)
    decide(first.pk, ann, "approve", digest=first.digest, via="page")
    told("backup", archive)
    decide(second.pk, ann, "approve", digest=second.digest, via="page")
    site.works()
    assert "clean" in told("restore", archive, replace=True)

    notice = Output.objects.get(prompt=prompt, type="text", path="")
    assert "Restored from a backup" in notice.content["text"]
    assert [(gate.path, gate.ask) for gate in pending(prompt)] == [(second.path, "approve")]
    decide(pending(prompt)[0].pk, ann, "reject", digest=second.digest, via="page", reason="It was done.")
    site.works()
    card = pending(prompt)[0]
    assert (card.path, card.ask) == (first.path, "interrupted")
    decide(card.pk, ann, "it_ran", digest=card.digest, via="page")
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, sum(site.world.times.values())) == ("completed", 2)
    told("verify_ledger", all=True)


def test_what_was_told_to_run_again_is_asked_about_anew(site: Site, ann: User, archive: Path) -> None:
    """CP39: an answer given before the backup was used up by what ran after it."""
    prompt = site.runs(ann, *ONE_GATE)
    site.approves(prompt, ann)
    told("backup", archive)
    told("restore", archive, replace=True)
    site.works()
    card = pending(prompt)[0]
    decide(card.pk, ann, "run_again", digest=card.digest, via="page")
    told("backup", archive, force=True)
    site.works()
    assert site.world.times == {("shell.run", "a"): 1}
    told("restore", archive, replace=True)
    site.works()
    assert (pending(prompt)[0].ask, site.world.times) == ("interrupted", {("shell.run", "a"): 1})
    told("verify_ledger", all=True)


def test_what_needs_no_approval_ends_unless_it_may_run_again(
    site: Site, ann: User, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP39: calls behind a gate that nobody had decided. The agent is told; what changes nothing is simply done."""
    tools = {tool.name: tool for tool in site.world.tools()}
    monkeypatch.setattr("conversations.backup.after_restore.installed_tool", tools.get)
    behind = call("shell.run", command="a"), call("report.write", name="q"), call("touch", name="t")
    prompt = site.runs(ann, says("Three.", *behind), says("Done."))
    told("backup", archive)
    site.approves(prompt, ann)
    site.works()
    told("restore", archive, replace=True)
    site.approves(prompt, ann)
    site.works()
    prompt.refresh_from_db()
    assert prompt.state == "completed"
    assert site.world.times == {("shell.run", "a"): 2, ("report.write", "q"): 1, ("touch", "t"): 2}
    ended = Output.objects.get(prompt=prompt, tool="report.write").content["result"]["error"]
    assert (ended["code"], "nobody knows" in ended["message"]) == ("interrupted", True)
    told("verify_ledger", all=True)


def test_a_stopped_turn_only_ends(site: Site, ann: User, archive: Path) -> None:
    """Somebody stopped it before the backup while a worker had it: nothing of it is asked about."""
    from conversations.prompts.start import cancel_prompt

    prompt = site.runs(ann, *ONE_GATE)
    site.approves(prompt, ann)
    taken(prompt)
    cancel_prompt(prompt.pk, ann)
    told("backup", archive)
    Prompt.objects.update(lease_until=0)
    told("restore", archive, replace=True)
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, site.world.done) == ("cancelled", [])
    told("verify_ledger", all=True)


def test_nobody_of_the_past_comes_back_to_work_or_is_signed_in(
    site: Site, ann: User, archive: Path, client: Client
) -> None:
    """Sessions, leases and workers of the backup count for nothing; a worker from after it has no claim either."""
    prompt = site.starts(ann, says("Hello."))
    claim = taken(prompt)
    client.force_login(ann)
    hosts.begin("there", 1)
    told("backup", archive)
    Prompt.objects.update(lease_until=0)
    Worker.objects.all().delete()
    out = told("restore", archive, replace=True)
    assert "sign in again" in out
    assert not any(rows.objects.exists() for rows in (Session, Worker))
    assert claimable(1) == [prompt.pk]
    assert taken(prompt).fence > claim.fence + 1000


def test_nobody_can_sign_in_with_what_a_backup_holds(
    site: Site, ann: User, archive: Path, client: Client, tmp_path: Path
) -> None:
    """The keys of sessions are what browsers send; those of the API are only kept as hashes."""
    client.force_login(ann)
    key = str(client.session.session_key).encode()
    told("backup", archive)
    with tarfile.open(archive) as tar:
        member = tar.extractfile("database")
        assert member
        content = member.read()
    if connection.vendor == "postgresql":
        (tmp_path / "dump").write_bytes(content)
        content = subprocess.run(
            ["pg_restore", "-f", "-", str(tmp_path / "dump")], capture_output=True, check=True
        ).stdout
    assert key not in content
    assert ann.username.encode() in content


@pytest.mark.skipif(connection.vendor != "sqlite", reason="what pg_dump writes is read row by row")
def test_what_was_erased_before_is_not_in_a_backup(site: Site, ann: User, archive: Path) -> None:
    """Nor in pages that nothing uses any more, where a SQLite that does not overwrite them left it."""
    talk = site.ended(ann, says("hunter2 " * 10_000)).conversation
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA secure_delete=OFF")
    erase(talk, ann)
    told("backup", archive)
    with tarfile.open(archive) as tar:
        database = tar.extractfile("database")
        assert database
        assert b"hunter2" not in database.read()
    assert "0 conversations, 0 steps: clean" in told("restore", archive)


@pytest.mark.postgres
def test_a_backup_may_take_longer_than_a_transaction_may_stand_still(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that holds its moment waits for pg_dump to end."""
    run = databases._run

    def slow(*command: str) -> None:
        still = "SELECT FROM pg_stat_activity WHERE pid = %s AND clock_timestamp() - state_change < interval '0.2 s'"
        where = connection.get_connection_params() | {"cursor_factory": None}
        with psycopg.connect(**where, autocommit=True) as other:
            while other.execute(still, [pid]).fetchone() is not None:
                pass
        run(*command)

    with connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = '100ms'")
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]
    monkeypatch.setattr(databases, "_run", slow)
    told("backup", archive)
    connection.close()


def again(*commands: str) -> str:
    """How a restore names what is back, with the commands that take it out again."""
    lines = [f"    python manage.py {command} --by USERNAME --reason WHY\n" for command in commands]
    return "".join(["These were erased or redacted after the backup and are back now. Repeat it:\n", *lines])


def test_what_was_erased_or_redacted_and_came_back_is_named(site: Site, ann: User, archive: Path) -> None:
    """People with their conversations, other conversations, and steps; each with the command that does it again."""
    kim = person("kim")
    site.ended(kim, says("Mine."))
    known, gone, secret = (site.ended(ann, says("Secret.")).conversation for _ in range(3))
    redact(known, [1], ann, "Old.")
    erase_user(person("known"), ann)
    told("backup", archive)
    assert "back now" not in told("restore", archive, replace=True)
    later = site.ended(ann, says("Unused."), says("Later."), conversation=known)
    redact(known, [later.steps.get(type="text").seq], ann, "Only there.")
    done = redact(secret, [1], ann, "Old.").seqs
    erase(gone, ann)
    erase_user(kim, ann)
    commands = "erase_user kim", f"erase {gone.pk}", f"redact {secret.pk} {' '.join(map(str, done))}"
    out = told("restore", archive, replace=True)
    assert again(*commands) in out
    assert "clean" in out
    for command in commands:
        told(*command.split(), by="ann", reason="Again.")
    assert list(Conversation.objects.order_by("pk")) == [known, secret]
    told("backup", archive, force=True)
    assert "back now" not in told("restore", archive, replace=True)


def test_an_archive_of_another_site_brings_back_nobody(ann: User, archive: Path) -> None:
    """Whoever has the number of somebody who was erased here is another."""
    kim = person("kim")
    told("backup", archive)
    kim.date_joined = timezone.now()
    erase_user(kim, ann)
    assert "back now" not in told("restore", archive, replace=True)


RUNNING: dict[str, Callable[[Prompt], object]] = {
    "the worker on there reported": lambda prompt: hosts.begin("there", 1),
    "a worker process on there is running turns": lambda prompt: hosts.take_drain("there", 0, "token", 30),
    "1 turn is held by a worker": taken,
}


@pytest.mark.parametrize("why", RUNNING)
def test_a_site_that_works_is_not_restored(site: Site, ann: User, archive: Path, why: str) -> None:
    prompt = site.starts(ann, says("Hello."))
    told("backup", archive)
    RUNNING[why](prompt)
    with pytest.raises(CommandError, match=f"Nothing was changed: {why}.*Stop the site first"):
        told("restore", archive, replace=True)


def test_a_site_whose_pages_are_served_is_not_restored(archive: Path, settings: Settings) -> None:
    import socket

    told("backup", archive)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        settings.PORT = server.getsockname()[1]
        with pytest.raises(CommandError, match=f"something answers at port {settings.PORT}"):
            told("restore", archive)


@pytest.mark.parametrize("step", ["work.call_command", "exchange.Exchange.swap"])
def test_a_restore_that_fails_midway_is_repeated(
    site: Site, ann: User, archive: Path, settings: Settings, step: str
) -> None:
    """Until then no worker takes a turn of it up; afterwards they go on, and the files are those of the backup."""
    prompt = site.starts(ann, says("Hello."))
    folder = workspace(settings, prompt.conversation)
    (folder / "note").write_text("before")
    told("backup", archive)
    (folder / "note").write_text("now")
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(f"conversations.backup.{step}", full)
        with pytest.raises(CommandError, match=r"did not finish: .*No space left.*with --replace"):
            told("restore", archive, replace=True)
    assert claimable(1) == []

    assert "clean" in told("restore", archive, replace=True)
    assert claimable(1) == [prompt.pk]
    assert (folder / "note").read_text() == "before"
    assert [path.name for path in Path(settings.AGENTSITE_WORKSPACES).iterdir()] == [folder.name]


def full(*_args: object, **_options: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_too_small_for_the_files_changes_nothing(
    site: Site, ann: User, archive: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workspaces on a disk of their own: their content is there before the database is touched."""
    folder = workspace(settings, site.ended(ann, says("Hello.")).conversation)
    (folder.parent / "other").mkdir()
    told("backup", archive)
    (folder / "later").write_text("x")
    (folder.parent / "other").rmdir()
    site.ended(ann, says("Later."))
    moves = iter([shutil.move, full])

    def move(new: Path, place: Path) -> None:
        next(moves)(new, place)

    monkeypatch.setattr("conversations.backup.exchange.shutil.move", move)
    with pytest.raises(CommandError, match="No space left"):
        told("restore", archive, replace=True)
    assert (Conversation.objects.count(), (folder / "later").exists()) == (2, True)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.usefixtures("plain_rights")
def test_folders_that_nobody_may_write_are_replaced(site: Site, ann: User, archive: Path, settings: Settings) -> None:
    """As Go leaves its module cache; and the workspace's own folder, which its agent may close too."""
    folder = workspace(settings, site.ended(ann, says("Hello.")).conversation)
    (folder / "pkg" / "mod").mkdir(parents=True)
    (folder / "pkg" / "mod" / "x.go").write_text("package x")
    for closed in (folder / "pkg" / "mod", folder / "pkg", folder):
        closed.chmod(0o555)
    told("backup", archive)
    (folder / "pkg" / "mod").chmod(0)
    assert "clean" in told("restore", archive, replace=True)
    assert (folder / "pkg" / "mod" / "x.go").read_text() == "package x"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.usefixtures("plain_rights")
def test_removing_a_folder_leaves_what_its_links_lead_to(tmp_path: Path) -> None:
    """What is read-only in it goes; a folder outside keeps what it holds, and its rights."""
    (outside := tmp_path / "outside").mkdir(mode=0o500)
    (folder := tmp_path / "folder").mkdir()
    (folder / "shut").mkdir()
    (folder / "shut" / "link").symlink_to(outside)
    (folder / "shut").chmod(0o500)
    remove_tree(folder)
    assert (folder.exists(), stat.S_IMODE(outside.stat().st_mode)) == (False, 0o500)
    remove_tree(folder)  # not there: nothing happens


@pytest.mark.usefixtures("plain_rights")
def test_what_cannot_be_read_is_named(site: Site, ann: User, archive: Path, settings: Settings) -> None:
    """A file, a folder, and one that is too deep: the backup goes on, and says what is not in it."""
    folder = workspace(settings, site.ended(ann, says("Hello.")).conversation)
    (folder / "secret").touch(mode=0)
    (folder / "shut").mkdir(mode=0)
    (folder / "/".join("d" * 120)).mkdir(parents=True)
    (folder / "note").write_text("x")
    errors = io.StringIO()
    assert "and 1 file," in told("backup", archive, stderr=errors)
    lines = errors.getvalue().splitlines()
    assert lines[0] == "Left out because they could not be read: 3."
    for line in (
        f"workspaces/{folder.name}/secret: Permission",
        f"{folder.name}/shut: Permission",
        "d/d: File name too",
    ):
        assert line in errors.getvalue()


def test_a_backup_needs_room_only_where_it_goes(archive: Path, settings: Settings, tmp_path: Path) -> None:
    """Its target's disk: the system's folder for temporary files may be small, and in memory."""
    (Path(settings.AGENTSITE_WORKSPACES) / "9").mkdir()
    (Path(settings.AGENTSITE_WORKSPACES) / "9" / "big").write_bytes(bytes(IN_MEMORY + 1))
    with pytest.MonkeyPatch.context() as without:
        without.setattr("tempfile.tempdir", str(tmp_path / "missing"))
        told("backup", archive)
    assert archive.exists()


def test_conversations_go_only_where_somebody_says_so(site: Site, ann: User, archive: Path) -> None:
    site.ended(ann, says("Hello."))
    told("backup", archive)
    with pytest.raises(CommandError, match="this site has 1 conversation, which a restore deletes"):
        told("restore", archive)
    with pytest.raises(CommandError, match="already exists"):
        told("backup", archive)


def test_a_workspace_gives_away_nothing_that_lies_outside(
    site: Site, ann: User, archive: Path, settings: Settings
) -> None:
    """Links out, pipes and sockets that an agent made are counted, not archived, and hold nobody up."""
    folder = workspace(settings, site.ended(ann, says("Hello.")).conversation)
    (folder / "key").symlink_to("../../data/secret.key")
    (folder / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    assert "Left out of workspaces: 3 links and other things" in told("backup", archive)
    with tarfile.open(archive) as tar:
        assert [name for name in tar.getnames() if "/" in name] == [f"workspaces/{folder.name}"]


def rewritten(archive: Path, change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(archive) as tar:
        members = [(info, file.read() if (file := tar.extractfile(info)) else b"") for info in tar]
    with tarfile.open(archive, "w:gz") as tar:
        for info, content in (change(*member) for member in members):
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def named(old: str, new: str, link: str = "") -> Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]:
    def change(info: tarfile.TarInfo, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if info.name == old:
            info.name = new
            if link:
                info.type, info.linkname, content = tarfile.SYMTYPE, link, b""
        return info, content

    return change


def said(**changes: Any) -> Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]:
    def change(info: tarfile.TarInfo, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
        return info, json.dumps(json.loads(content) | changes).encode() if info.name == "manifest.json" else content

    return change


NOTE = "workspaces/9/note"
OTHER = "postgresql" if connection.vendor == "sqlite" else "sqlite"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (named(NOTE, "/etc/cron.d/x"), "contains '/etc/cron.d/x', which no backup does"),
        (named(NOTE, "workspaces/../../x"), "which no backup does"),
        (named(NOTE, "data/secret.key"), "which no backup does"),
        (named(NOTE, NOTE, link="../../../etc"), "which no backup does"),
        (named(NOTE, "files/link", link="a"), "which no backup does"),
        (named(NOTE, "workspaces/9/other"), "does not match the manifest"),
        (lambda info, content: (info, content + b"x" if info.name == NOTE else content), "does not match the manifest"),
        (named("manifest.json", "files/manifest.json"), "has no manifest"),
        (said(format=2), "has format 2"),
        (said(database=OTHER), f"contains a {OTHER} database"),
        (
            said(state={"migrations": ["agents.9999_later"], "conversations": 0, "steps": 0, "heads": ""}),
            "does not know .agents.9999_later.",
        ),
    ],
)
def test_an_archive_that_is_no_backup_of_this_site_changes_nothing(
    archive: Path, settings: Settings, change: Any, why: str
) -> None:
    folder = Path(settings.AGENTSITE_WORKSPACES) / "9"
    folder.mkdir()
    (folder / "note").write_text("before")
    told("backup", archive)
    (folder / "note").write_text("now")
    rewritten(archive, change)
    with pytest.raises(CommandError, match=why):
        told("restore", archive, replace=True)
    assert (folder / "note").read_text() == "now"
    assert list(Path(settings.AGENTSITE_DATA).glob(".restore-*")) == []


def crafted(archive: Path, *more: tarfile.TarInfo) -> None:
    """Put more members before those that the archive has."""
    with tarfile.open(archive) as tar:
        members = [(info, file.read() if (file := tar.extractfile(info)) else b"") for info in tar]
    with tarfile.open(archive, "w:gz") as tar:
        for info, content in (*((info, b"") for info in more), *members):
            tar.addfile(info, io.BytesIO(content))


def member(name: str, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(f"workspaces/{name}")
    info.type, info.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.DIRTYPE, "")
    return info


UP = member("1/a/b/c/d/up", "../../../..")
OUT = member("1/out", "a/b/c/d/up/../../..")
"""Word for word inside; by way of the other, outside of the restore's folder."""


@pytest.mark.parametrize("more", [[member("1/out/planted", "x")], [member("1/out")], [member("1/out", "a")]])
def test_nothing_is_made_through_a_link_of_an_archive(
    archive: Path, tmp_path: Path, more: list[tarfile.TarInfo]
) -> None:
    """CP39: an archive that somebody made, with something below a link that leads out, or in its place."""
    told("backup", archive)
    crafted(archive, UP, OUT, *more)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CommandError, match="contains 'workspaces/1/out', which no backup does"):
        told("restore", archive, replace=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_that_leads_out_by_way_of_another_is_left_out(archive: Path, settings: Settings) -> None:
    told("backup", archive)
    crafted(archive, UP, OUT, member("1/by", "out/."), member("1/fine", "a/b"))
    assert "left out: 2." in told("restore", archive, replace=True)
    folder = Path(settings.AGENTSITE_WORKSPACES) / "1"
    assert sorted(path.name for path in folder.iterdir()) == ["a", "fine"]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="other applications' tables: a PostgreSQL database")
def test_tables_of_another_application_are_not_thrown_away(archive: Path) -> None:
    told("backup", archive)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE theirs (id int)")
        try:
            with pytest.raises(CommandError, match="has 1 tables that are not this site's, such as theirs"):
                told("restore", archive, replace=True)
        finally:
            cursor.execute("DROP TABLE theirs")


def test_half_an_archive_changes_nothing(site: Site, ann: User, archive: Path) -> None:
    prompt = site.runs(ann, *ONE_GATE)
    told("backup", archive)
    archive.write_bytes(archive.read_bytes()[:-200])
    with pytest.raises(CommandError, match="cannot be read completely"):
        told("restore", archive, replace=True)
    assert pending(prompt)[0].gate == GateState.PENDING


def test_a_backup_that_fails_leaves_no_file(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.backup.databases.copy", lambda target: target.rmdir())
    with pytest.raises(CommandError):
        told("backup", archive)
    assert list(archive.parent.glob("*backup.tar.gz*")) == []
    assert list(archive.parent.glob(".*")) == []
