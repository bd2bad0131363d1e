"""Which system prompt a turn has, what its variables become, and what the record says of it."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from agents import agent, policy
from agents.models import AgentPrompt, ChangedMeanwhile, SystemPrompt, SystemPromptVersion
from conversations.accounts.zones import zone_of, zones_by_region
from conversations.erasure.steps import redact
from conversations.models import Account, Conversation, Prompt, Snapshot, Step
from conversations.prompts import system_prompts
from conversations.prompts.listing import choose_system_prompt
from conversations.prompts.start import (
    begin_conversation,
    continue_prompt,
    repeat_prompt,
    start_conversation,
    start_prompt,
)
from conversations.prompts.system_prompts import NotChoosable, agents, find_choosable, rendered, unknown_variables
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, at_once, meddle
from tests.conversations.support import person
from tests.conversations.travel import APP, installed, owner_of, started
from tests.engine.support import says

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)


def system_of(prompt: Prompt) -> Any:
    """Return what the record says of the system prompt of a turn."""
    said = Step.objects.get(prompt=prompt, path="", type="action_call").content
    return (said["payload"] if said["policy"] == "agent" else said["site"]).get("system")


def text_of(prompt: Prompt) -> Any:
    return (system_of(prompt) or {}).get("text")


def says_hi(owner: User, **chosen: Any) -> Prompt:
    return start_prompt(start_conversation(owner, **chosen), owner, "Hi.")


# Variables

PIECES = st.lists(
    st.text(max_size=5) | st.sampled_from(["{user}", "{date}", "{site}", "{", "}", "{{user}}", "{ user }", "{User}"]),
    max_size=8,
)
VALUES = {"user": "{date} Ann", "date": "{site}{user}", "site": "\\1 {user}"}


@given(PIECES)
def test_all_variables_are_replaced_at_once_and_everything_else_stays(pieces: list[str]) -> None:
    """The reference walks through the text once. Values that look like variables, or like references, stay."""
    text, at, expected = "".join(pieces), 0, ""
    while at < len(text):
        name = next((name for name in VALUES if text.startswith(f"{{{name}}}", at)), None)
        expected += VALUES[name] if name else text[at]
        at += len(name) + 2 if name else 1
    known = {name: lambda user, now, value=value: value for name, value in VALUES.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system_prompts, "VARIABLES", known)
        assert rendered(SystemPromptVersion(text=text), User(), NOON) == expected


def test_a_person_a_day_and_the_site_are_filled_in(settings: Settings) -> None:
    settings.AGENTSITE_URL = "https://agents.example:8443"
    version = SystemPromptVersion(text='{user} on {date} at {site}: {"answer": {name}} {0} {user.password}')
    known = 'Ann on Thursday, 26 November 2026 at agents.example:8443: {"answer": {name}} {0} {user.password}'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system_prompts, "zone_of", lambda user: UTC)
        assert rendered(version, User(username="ann7", first_name="Ann"), NOON) == known


@given(st.text(max_size=300))
def test_a_name_is_one_short_line_of_what_can_be_seen(name: str) -> None:
    line = rendered(SystemPromptVersion(text="{user}"), User(username=name or "x"), NOON)
    assert len(line) <= system_prompts.USER_MOST
    assert line == " ".join(line.split())
    assert line.isprintable()


def test_a_person_whose_name_cannot_be_seen_is_called_as_their_account() -> None:
    assert rendered(SystemPromptVersion(text="{user}"), User(username="ann", first_name="\u200b\u202e"), NOON) == "ann"


def test_names_in_braces_that_are_no_variables_are_found() -> None:
    assert unknown_variables('{user} {name} {"a": 1} { date } {User} {name} {{today}} {} {0} {a b}') == [
        "name",
        "User",
        "today",
    ]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("zone", "now", "day"),
    [
        ("", "2026-11-26T23:59:59+00:00", "Thursday, 26 November 2026"),
        ("", "2026-11-27T00:00:00+00:00", "Friday, 27 November 2026"),
        ("Pacific/Auckland", "2026-11-26T10:59:59+00:00", "Thursday, 26 November 2026"),
        ("Pacific/Auckland", "2026-11-26T11:00:00+00:00", "Friday, 27 November 2026"),
        ("America/Los_Angeles", "2026-12-01T07:59:59+00:00", "Monday, 30 November 2026"),
        ("Europe/Berlin", "2026-12-31T23:00:00+00:00", "Friday, 1 January 2027"),
        ("Europe/Atlantis", "2026-11-26T23:59:59+00:00", "Thursday, 26 November 2026"),
        ("../../etc/passwd", "2026-11-26T23:59:59+00:00", "Thursday, 26 November 2026"),
    ],
)
def test_the_day_is_that_of_the_owners_zone(ann: User, zone: str, now: str, day: str) -> None:
    """Of the site's, for who chose none, or one that this machine does not know."""
    Account.objects.create(user=ann, zone=zone)
    assert rendered(SystemPromptVersion(text="{date}"), ann, datetime.fromisoformat(now)) == day


@pytest.mark.django_db
def test_the_zones_that_are_offered_are_known_and_whoever_has_no_account_has_the_sites(ann: User) -> None:
    names = [name for _, zones in zones_by_region() for name, _ in zones]
    assert {"Europe/Berlin", "America/Argentina/Buenos_Aires", "UTC"} <= set(names)
    assert len(names) == len(set(names))
    assert zone_of(ann).key == "UTC"


# Which one a turn has


@pytest.fixture
def prompts(db: None) -> dict[str, SystemPrompt]:
    names = ("chosen", "of agent", "of guide", "default")
    return {name: SystemPrompt.create(name, f"Text {name}.", is_default=name == "default") for name in names}


@pytest.fixture
def traveller(db: None) -> User:
    return owner_of()


@pytest.mark.django_db
def test_a_conversations_choice_goes_before_that_of_the_agent_and_that_before_the_default(
    ann: User, prompts: dict[str, SystemPrompt]
) -> None:
    assert text_of(says_hi(ann)) == "Text default."
    AgentPrompt.objects.create(policy="agent", prompt=prompts["of agent"])
    assert text_of(says_hi(ann)) == "Text of agent."
    assert text_of(says_hi(ann, system_prompt=prompts["chosen"])) == "Text chosen."
    AgentPrompt.objects.all().delete()
    SystemPrompt.objects.update(is_default=False)
    assert system_of(says_hi(ann)) is None


def test_the_owner_has_the_name_that_is_theirs_as_the_turn_starts(ann: User) -> None:
    """Not the one that they had when the request came."""
    named = SystemPrompt.create("named", "You work for {user}.")
    User.objects.filter(pk=ann.pk).update(first_name="Renamed")
    assert text_of(begin_conversation(ann, "Hi.", system_prompt=named)) == "You work for Renamed."


def test_another_agent_has_its_row_or_its_authors_text_and_never_the_conversations_choice(
    traveller: User, prompts: dict[str, SystemPrompt], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`travel.guide` has a text in its code, which goes before the default; `travel.plain` has none."""
    plain = policy("travel.plain", title="A plain agent")(agent())
    provider = installed(site, monkeypatch, *[says("Yes.")] * 5, policies=(*APP, plain))
    chose = start_conversation(traveller, system_prompt=prompts["chosen"])

    def told(name: str) -> str:
        start_prompt(chose, traveller, policy=name, payload={"text": "Where to?"})
        site.works()
        return provider.asked[-1].system

    assert told("travel.guide") == "You are a guide."
    assert told("travel.plain") == "Text default."
    AgentPrompt.objects.create(policy="travel.guide", prompt=prompts["of guide"])
    assert told("travel.guide") == "Text of guide."
    assert told("travel.plain") == "Text default."
    SystemPrompt.objects.update(is_default=False)
    assert told("travel.plain").startswith("You are a helpful assistant.")
    assert verify(chose.pk).problems == []


def test_a_program_has_none(
    traveller: User, prompts: dict[str, SystemPrompt], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, monkeypatch)
    AgentPrompt.objects.create(policy="travel.plan", prompt=prompts["of agent"])  # it was an agent once
    assert system_of(started(traveller)) is None
    assert not SystemPrompt.objects.filter(used=True).exists()


def test_only_agents_can_be_given_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(site, monkeypatch)
    assert dict(agents()) == {"agent": "The agent of conversations", "travel.guide": "Ask the guide"}


def test_a_retired_one_stays_where_it_is_and_is_chosen_no_more(ann: User, prompts: dict[str, SystemPrompt]) -> None:
    talk = start_conversation(ann, system_prompt=prompts["chosen"])
    SystemPrompt.objects.filter(name="chosen").update(retired=True)
    assert text_of(start_prompt(talk, ann, "Hi.")) == "Text chosen."
    for named in ("chosen", prompts["chosen"].pk):
        with pytest.raises(NotChoosable, match="retired: choose another"):
            find_choosable(named)
    with pytest.raises(IntegrityError), transaction.atomic():
        SystemPrompt.objects.filter(is_default=True).update(retired=True)


# What the record says


@pytest.mark.django_db
def test_the_record_has_the_version_and_its_text_for_this_person(ann: User, site: Site) -> None:
    """And the model is told that. A later version does not change what is on record."""
    greeting = SystemPrompt.create("Greeting", "You talk with {user}.", ann)
    talk = start_conversation(ann, system_prompt=greeting)
    site.speaks(says("Hello."))
    first = start_prompt(talk, ann, "Hi.")
    greeting.write("You talk with {user}, again.", ann)
    site.works()
    first.refresh_from_db()
    assert first.state == "completed"
    assert system_of(first) == {"id": greeting.pk, "version": 1, "text": "You talk with ann."}
    second = start_prompt(talk, ann, "Hi.")
    assert system_of(second) == {"id": greeting.pk, "version": 2, "text": "You talk with ann, again."}
    assert verify(talk.pk).problems == []


@pytest.mark.django_db
def test_a_turn_that_repeats_or_continues_another_has_the_text_of_now(ann: User, site: Site) -> None:
    greeting = SystemPrompt.create("Greeting", "One.", is_default=True)
    first = site.ended(ann, says("Hello."))
    greeting.write("Two.", ann)
    again = repeat_prompt(first.pk, ann)
    assert (text_of(first), text_of(again)) == ("One.", "Two.")
    Prompt.objects.filter(pk=again.pk).update(state="failed", fence=1, ended_at=NOON)
    Conversation.objects.filter(pk=again.conversation_id).update(active_prompt=None)
    greeting.write("Three.", ann)
    assert text_of(continue_prompt(again.pk, ann)) == "Three."


@pytest.mark.django_db
def test_a_redacted_message_takes_the_text_with_the_name_along_and_the_version_stays(ann: User, site: Site) -> None:
    greeting = SystemPrompt.create("Greeting", "You talk with {user}.", is_default=True)
    prompt = site.ended(ann, says("Hello."))
    root = Step.objects.get(prompt=prompt, path="", type="action_call")
    redact(prompt.conversation, [root.seq], person("chief"), "A name.")
    assert system_of(prompt) == {"id": greeting.pk, "version": 1, "text": "[redacted]"}
    assert not Step.objects.filter(prompt=prompt, payload__contains="talk with").exists()
    assert not Snapshot.objects.filter(text__contains="talk with").exists()
    assert verify(prompt.conversation_id).problems == []


# Versions


@pytest.mark.django_db
def test_a_changed_text_is_the_next_version_and_an_equal_one_is_none(ann: User, bob: User) -> None:
    greeting = SystemPrompt.create("Greeting", "One.", ann)
    assert greeting.write("One.", bob) is None
    second = greeting.write("Two.", bob, opened=1)
    assert second
    assert [(each.number, each.text, each.changed_by) for each in greeting.versions.all()] == [
        (2, "Two.", bob),
        (1, "One.", ann),
    ]
    with pytest.raises(ChangedMeanwhile) as told:
        greeting.write("Mine.", ann, opened=1)
    assert told.value.latest == second
    assert greeting.latest() == second


@pytest.mark.django_db(transaction=True)
def test_who_write_at_once_get_one_version_each_or_are_told(ann: User) -> None:
    greeting = SystemPrompt.create("Greeting", "One.", ann)

    def write(text: str) -> Any:
        try:
            return greeting.write(text, ann, opened=1)
        except ChangedMeanwhile as told:
            return told

    came = at_once(*[lambda text=text: write(text) for text in "abcd"])
    assert sorted(type(each).__name__ for each in came) == ["ChangedMeanwhile"] * 3 + ["SystemPromptVersion"]
    assert greeting.latest().number == 2


@pytest.mark.django_db
def test_the_database_refuses_to_change_a_version_and_to_delete_one_that_was_used(ann: User) -> None:
    """Also with its system prompt. One that no turn has used goes with all that it has."""
    greeting = SystemPrompt.create("Greeting", "One.", is_default=True)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        SystemPromptVersion.objects.update(text="Two.")
    unused = SystemPrompt.create("Unused", "One.")
    talk = start_conversation(ann, system_prompt=unused)
    AgentPrompt.objects.create(policy="agent", prompt=unused)
    unused.delete()
    talk.refresh_from_db()
    assert talk.system_prompt is None
    assert text_of(start_prompt(talk, ann, "Hi.")) == "One."
    for delete in (SystemPromptVersion.objects.all().delete, SystemPrompt.objects.get(pk=greeting.pk).delete):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            delete()
    assert re.findall(r"\w+", greeting.latest().text) == ["One"]


@pytest.mark.django_db
def test_one_that_is_deleted_while_a_turn_starts_is_passed_over(ann: User) -> None:
    SystemPrompt.create("Default", "Default.", is_default=True)
    talk = start_conversation(ann, system_prompt=SystemPrompt.create("Gone", "Gone."))
    SystemPrompt.objects.filter(name="Gone").delete()  # `talk` still has the row as it was read
    said = system_prompts.recorded(talk, "agent", NOON)
    assert said
    assert said["text"] == "Default."


@pytest.mark.django_db(transaction=True)
def test_one_that_was_deleted_since_it_was_chosen_begins_nothing(ann: User) -> None:
    gone, talk = SystemPrompt.create("Gone", "Gone."), start_conversation(ann)
    SystemPrompt.objects.all().delete()
    for choose in (
        lambda: begin_conversation(ann, "Hi.", system_prompt=gone),
        lambda: start_conversation(ann, system_prompt=gone),
        lambda: choose_system_prompt(talk, gone),
    ):
        with pytest.raises(NotChoosable, match="deleted in the meantime"):
            choose()
    assert Conversation.objects.get() == talk
    assert not Prompt.objects.exists()


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_one_that_a_turn_begins_to_use_while_it_is_deleted_stays(ann: User) -> None:
    """The one who deletes it has passed its versions when the turn begins: the database looks once more."""
    new, using = SystemPrompt.create("New", "New."), threading.Event()

    def use() -> None:
        with transaction.atomic():
            assert new.mark_used()
            using.set()
            waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DELETE %%'"
            for _ in range(500):
                if meddle(waits):
                    return
                meddle("SELECT pg_sleep(0.02)")

    def delete() -> None:
        using.wait(30)
        SystemPrompt.objects.filter(pk=new.pk).delete()

    assert [type(each) for each in at_once(use, delete)] == [type(None), IntegrityError]
    assert new.latest().text == "New."
