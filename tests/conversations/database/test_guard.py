"""Steps are appended and never changed or deleted: the model refuses, and so does the database."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.core import checks
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.core.management.sql import emit_post_migrate_signal
from django.db import IntegrityError, connection, models, transaction

from conversations.database import guard
from conversations.models import Erasure, Prompt
from conversations.models import Step as Row
from conversations.models.step import AppendOnly
from conversations.prompts.start import start_conversation, start_prompt
from tests.conversations.recorded import meddle
from tests.guarding import remove_guard

STEPS = "conversations_step"
SQLITE = pytest.mark.skipif(connection.vendor != "sqlite", reason="a way of SQLite's")


@pytest.fixture
def prompt(ann: User) -> Prompt:
    return start_prompt(start_conversation(ann), ann, "Go.")


def refused(sql: str) -> None:
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        meddle(sql)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "sql",
    [
        f"UPDATE {STEPS} SET payload = '{{}}'",
        f"UPDATE {STEPS} SET id = id + 1",
        f"DELETE FROM {STEPS}",
        f"DELETE FROM {STEPS} WHERE seq = 1",
        pytest.param(f"INSERT OR REPLACE INTO {STEPS} SELECT * FROM {STEPS}", marks=SQLITE),
        pytest.param(f"UPDATE OR REPLACE {STEPS} SET seq = 1", marks=SQLITE),
    ],
)
def test_the_database_refuses(prompt: Prompt, sql: str) -> None:
    before = list(Row.objects.values())
    refused(sql)
    assert list(Row.objects.values()) == before


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_the_database_refuses_to_truncate(prompt: Prompt) -> None:
    for tables in (STEPS, "conversations_conversation CASCADE"):
        refused(f"TRUNCATE {tables}")
    assert Row.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.save(),
        lambda row: row.delete(),
        lambda row: Row.objects.update(path="x"),
        lambda row: Row.objects.all().delete(),
        lambda row: Row.objects.filter(seq=1).update(path="x"),
        lambda row: Row.objects.create(conversation_id=row.conversation_id, seq=2, prompt_id=row.prompt_id),
        lambda row: Row.objects.get_or_create(seq=9),
        lambda row: Row.objects.bulk_create([Row()]),
        lambda row: Row.objects.bulk_update([row], ["path"]),
        lambda row: row.prompt.steps.update(path="x"),
        lambda row: row.conversation.steps.all().delete(),
    ],
)
def test_the_model_refuses(prompt: Prompt, change: Callable[[Row], object]) -> None:
    with pytest.raises(AppendOnly, match="append-only"):
        change(Row.objects.get())


@pytest.mark.django_db
def test_what_steps_belong_to_is_protected(prompt: Prompt, ann: User) -> None:
    for owner in (prompt, prompt.conversation, ann):
        with pytest.raises(models.ProtectedError):
            owner.delete()


@pytest.mark.django_db
def test_an_erasure_lets_go_of_its_own_conversation_alone(prompt: Prompt, bob: User) -> None:
    other = start_prompt(start_conversation(bob), bob, "Go.")
    Erasure.objects.create(conversation_id=prompt.conversation_id, erased_by="ann", steps=1, head="")
    refused(f"DELETE FROM {STEPS}")
    refused(f"UPDATE {STEPS} SET path = 'x' WHERE conversation_id = {prompt.conversation_id}")
    assert meddle(f"DELETE FROM {STEPS} WHERE conversation_id = {prompt.conversation_id}") == 1
    assert [row.prompt for row in Row.objects.all()] == [other]


@pytest.mark.django_db
def test_the_triggers_stand_after_migrate() -> None:
    assert guard.missing(connection) == []
    assert [e for e in checks.run_checks(databases=["default"]) if e.id == "conversations.E001"] == []


@pytest.mark.django_db(transaction=True)
def test_they_stand_after_a_later_migration_that_remakes_the_table(prompt: Prompt) -> None:
    """SQLite alters a field by making the table anew, and drops its triggers without a word."""
    old = Row._meta.get_field("actor")
    new = models.CharField(max_length=160)
    new.set_attributes_from_name("actor")
    new.model = Row
    with connection.schema_editor() as editor:
        editor.alter_field(Row, old, new)
    if connection.vendor == "sqlite":
        assert guard.missing(connection) == ["ledger_no_update", "ledger_no_delete"]
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
    assert guard.missing(connection) == []
    refused(f"UPDATE {STEPS} SET path = 'x'")
    with connection.schema_editor() as editor:
        editor.alter_field(Row, new, old)
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
    refused(f"DELETE FROM {STEPS}")
    assert Row.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", guard.triggers(connection))
def test_a_missing_trigger_is_an_error_that_names_it_and_the_way_out(name: str) -> None:
    meddle(guard.dropping(connection, name))
    (error,) = [e for e in checks.run_checks(databases=["default"]) if e.id == "conversations.E001"]
    assert name in error.msg
    assert error.hint == "Run `manage.py migrate --skip-checks`, which creates them."
    with pytest.raises(SystemCheckError, match=r"conversations\.E001"):
        call_command("migrate", verbosity=0, skip_checks=False)
    call_command("migrate", verbosity=0, skip_checks=True)
    assert guard.missing(connection) == []


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["DISABLE TRIGGER", "ENABLE REPLICA TRIGGER"])
def test_a_trigger_that_does_not_fire_is_missing(how: str) -> None:
    meddle(f"ALTER TABLE {STEPS} {how} ledger_no_update")
    assert guard.missing(connection) == ["ledger_no_update"]


@pytest.mark.django_db(transaction=True)
def test_putting_them_up_twice_or_without_tables_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    guard.install()
    assert guard.missing(connection) == []
    remove_guard()
    monkeypatch.setattr(guard, "STEPS", "not_there")
    guard.install()
    monkeypatch.undo()
    assert guard.missing(connection) == list(guard.triggers(connection))


def test_the_check_is_asked_for_the_database_alone() -> None:
    """`manage.py check` without `--database` has none looked at, which this test could not reach."""
    registered = checks.registry.registry.registered_checks
    mine = {check for check in registered if check.__module__ == "conversations.database.checks"}
    assert mine
    assert all(checks.Tags.database in check.tags for check in mine)
    assert [error for check in mine for error in check(app_configs=None, databases=None)] == []
    assert issubclass(SystemCheckError, CommandError)
