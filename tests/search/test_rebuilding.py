"""Words follow their rows, and are written anew after changes past the site, or in another language."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.models.signals import post_migrate
from pytest_django.fixtures import Settings

from agents.models import Blueprint, SearchedWord, SearchIndex, WordCount
from agents.search.index import best, put
from agents.search.rebuilding import rebuild, rebuild_if_outdated
from agents.search.words import written_as
from agentsite.env import Environment
from agentsite.errors import CannotStart
from tests.conversations.recorded import at_once

pytestmark = pytest.mark.django_db

State = tuple[list[tuple[str, str, int, bool]], list[tuple[str, str, int]]]


def state() -> State:
    """All words and all counts."""
    words = SearchedWord.objects.order_by("collection", "word", "row")
    counts = WordCount.objects.order_by("collection", "word")
    return (
        list(words.values_list("collection", "word", "row", "in_title")),
        list(counts.values_list("collection", "word", "rows")),
    )


def blueprints(*names: str) -> list[Blueprint]:
    return [Blueprint.objects.create(name=name, when=f"About {name}.", text="A text.") for name in names]


def found(text: str) -> list[int]:
    return [match.row for match in best(Blueprint.COLLECTION, text, 10)]


def test_a_row_is_found_from_when_it_is_saved_until_it_is_deleted() -> None:
    one, two = blueprints("refunds", "refunds again")
    assert found("refund") == [one.pk, two.pk]
    one.name = one.when = "Taxes"
    one.save()
    assert (found("refund"), found("tax")) == ([two.pk], [one.pk])
    two.delete()
    Blueprint.objects.filter(pk=one.pk).delete()
    assert state() == ([], [])


def test_a_row_whose_words_cannot_be_written_is_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    blueprints("refunds")
    before = state()
    monkeypatch.setattr("agents.search.rebuilding.put", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Blueprint.objects.create(name="Taxes", when="w", text="t")
    assert (state(), Blueprint.objects.count()) == (before, 1)


def test_what_was_changed_past_the_site_is_repaired(capsys: pytest.CaptureFixture[str]) -> None:
    """In bulk, by SQL, and in the words themselves."""
    one, two = blueprints("refunds", "taxes")
    Blueprint.objects.bulk_create([Blueprint(name="salaries", when="w", text="t")])
    Blueprint.objects.filter(pk=one.pk).update(name="invoices", when="w")
    Blueprint.objects.filter(pk=two.pk)._raw_delete("default")
    WordCount.objects.update(rows=77)
    put(Blueprint.COLLECTION, 999, "nobody's", "words")
    call_command("rebuild_search")
    assert "The words of 2 texts are written anew." in capsys.readouterr().out
    assert (len(found("salary")), len(found("invoice")), found("tax"), found("refund")) == (1, 1, [], [])
    repaired = state()
    SearchedWord.objects.all().delete()
    WordCount.objects.all().delete()
    for blueprint in Blueprint.objects.all():
        blueprint.save()
    assert state() == repaired


def test_another_language_writes_all_words_anew_at_the_next_migration(settings: Settings) -> None:
    rebuild()
    (one,) = blueprints("Rechnungen")
    assert found("Rechnung") == []
    settings.AGENTSITE_SEARCH_LANGUAGE = "german"
    rebuild_if_outdated()
    assert found("Rechnung") == [one.pk]
    assert SearchIndex.objects.get().written_as == written_as()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agents.search.rebuilding.rebuild", lambda: pytest.fail("They are up to date."))
        rebuild_if_outdated()


def test_migrations_look_whether_they_are_up_to_date() -> None:
    SearchIndex.objects.all().delete()
    config = apps.get_app_config("agents")
    post_migrate.send(config, app_config=config, using="default", verbosity=0, interactive=False)
    assert SearchIndex.objects.get().written_as == written_as()


def test_an_unknown_language_is_refused_with_those_there_are(settings: Settings) -> None:
    from agents.search import languages

    choices = (*languages.LANGUAGES, languages.NO_LANGUAGE)
    with pytest.raises(CannotStart, match=r"'klingon': write one of arabic, .*, turkish, none"):
        Environment({"AGENTSITE_SEARCH_LANGUAGE": "klingon"}).choice("AGENTSITE_SEARCH_LANGUAGE", "english", choices)
    assert settings.AGENTSITE_SEARCH_LANGUAGE in choices


@pytest.mark.django_db(transaction=True)
def test_rows_that_are_saved_while_all_is_written_anew_are_right_afterwards() -> None:
    made = blueprints(*(f"refund {n}" for n in range(5)))

    def saving() -> None:
        for n in range(15):
            blueprint = Blueprint.objects.get(pk=made[n % 5].pk)
            blueprint.when = f"About taxes {n}."
            blueprint.save()

    def rebuilding() -> None:
        for _ in range(5):
            rebuild()

    assert at_once(saving, rebuilding, saving) == [None, None, None]
    after = state()
    rebuild()
    assert state() == after
    connection.close()
