"""Erasing a person: their conversations and who they were go; what they decided for others, and numbers, stay."""

import io
import json

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from agents.models import Memory, MemoryStanding, SearchedWord
from agents.plugins.memory import keeping
from conversations.accounts.keys import make_key
from conversations.approvals.decisions import decide
from conversations.erasure import people
from conversations.erasure.conversations import TurnRuns, erase
from conversations.erasure.people import LastAdministrator, erase_user
from conversations.models import (
    Account,
    ApiKey,
    Conversation,
    Erasure,
    Output,
    PassthroughUsage,
    Prompt,
    Quota,
    Usage,
)
from conversations.pages.account.forms import Details
from conversations.prompts import start as prompts
from conversations.prompts.start import (
    Deactivated,
    begin_conversation,
    continue_prompt,
    start_conversation,
    start_prompt,
)
from conversations.verification.stored import verify
from tests.api.client import error_of, with_key
from tests.conversations.recorded import ONE_GATE, Site, at_once, pending, taken
from tests.conversations.support import person
from tests.engine.support import says

pytestmark = pytest.mark.django_db(transaction=True)
WHO = ("leaving-lea", "Lea-the-leaver", "lea@example.com")


@pytest.fixture
def lea(db: None) -> User:
    """Somebody of whom the site knows all it can."""
    name, first, email = WHO
    user = person(name, "decide_approval", first_name=first, email=email)
    Account.objects.create(user=user)
    Quota.objects.create(user=user, running_prompts=3)
    keeping.save(user.pk, f"{first} prefers tea.")
    keeping.switch(user.pk, on=False)
    key, _ = make_key(user, f"{first}'s", ["read"], None)
    PassthroughUsage.objects.create(user=user, key_id=key.pk, key_name=key.name, minute=timezone.now(), requests=7)
    return user


def known() -> set[str]:
    """The tables that still say who they were."""
    rows = ((model, row) for model in apps.get_models() for row in model._base_manager.values())
    return {model.__name__ for model, row in rows if any(each in json.dumps(row, default=str) for each in WHO)}


def test_nothing_of_them_is_left_but_what_they_did_for_others(ann: User, lea: User, site: Site, client: Client) -> None:
    Client().post("/login/", {"username": lea.username, "password": "wrong"})
    client.force_login(lea)
    erase(site.ended(ann, says("Old.")).conversation, lea)
    others = site.runs(ann, *ONE_GATE)
    gate = pending(others)[0]
    decide(gate.pk, lea, "approve", digest=gate.digest, via="admin")
    site.works()
    mine = site.ended(lea, says("Mine."))
    used = Usage.objects.filter(user=lea).count()
    assert known() >= {"User", "Erasure", "AccessAttempt", "PassthroughUsage"}

    assert erase_user(lea, ann, "She asked.") == 1

    assert known() == set()
    lea.refresh_from_db()
    assert (lea.username, lea.is_active, lea.has_usable_password()) == (f"erased-{lea.pk}", False, False)
    assert not lea.user_permissions.exists()
    assert not lea.groups.exists()
    assert not Conversation.objects.filter(owner=lea).exists()
    assert Erasure.objects.get(conversation_id=mine.conversation_id).reason == "She asked."
    assert (ApiKey.objects.count(), Session.objects.count()) == (0, 0)
    assert not any(table.objects.exists() for table in (Memory, MemoryStanding, SearchedWord))
    assert client.get("/").status_code == 302
    assert Output.objects.get(pk=gate.pk).decided_by == f"user:{lea.pk}"
    assert Usage.objects.filter(user=lea).count() == used > 0
    assert PassthroughUsage.objects.get(user=lea).requests == 7
    assert verify(others.conversation_id).problems == []
    html = client_of(ann).get(others.conversation.get_absolute_url()).text
    assert f"erased-{lea.pk}" in html


def test_who_is_only_deactivated_keeps_their_memories(lea: User) -> None:
    User.objects.filter(pk=lea.pk).update(is_active=False)
    assert [each.text for each in keeping.find(lea.pk, "tea")] == ["Lea-the-leaver prefers tea."]


def test_the_admins_history_says_no_more_who_they_were(ann: User, lea: User) -> None:
    """Not of their row, not of what was changed in it, nor of a key named after them; others' entries stay."""
    chief = client_of(person("chief", is_superuser=True, is_staff=True))
    chief.post(reverse("admin:auth_user_change", args=[lea.pk]), row_of(lea) | {"quota-0-running_prompts": "2"})
    keys = [make_key(owner, name, ["read"])[0] for owner, name in ((lea, "For lea-the-LEAVER"), (ann, "CI"))]
    for key in keys:
        chief.post(reverse("admin:conversations_apikey_delete", args=[key.pk]), {"post": "yes"})
    assert (
        "Quota of leaving-lea" in LogEntry.objects.get(object_id=str(lea.pk), content_type__model="user").change_message
    )
    erase_user(lea, ann)
    assert known() == set()
    said = LogEntry.objects.order_by("pk").values_list("object_repr", "change_message")
    assert list(said) == [(f"erased-{lea.pk}", ""), (str(keys[0].pk), ""), ("CI", "")]


def row_of(user: User) -> dict[str, str]:
    """What the admin's form of this person sends where nothing is changed."""
    joined, quota = user.date_joined, Quota.objects.get(user=user)
    return {
        "username": user.username,
        "first_name": user.first_name,
        "email": user.email,
        "is_active": "on",
        "date_joined_0": joined.date().isoformat(),
        "date_joined_1": joined.strftime("%H:%M:%S"),
        "quota-TOTAL_FORMS": "1",
        "quota-INITIAL_FORMS": "1",
        "quota-0-id": str(quota.pk),
        "quota-0-user": str(user.pk),
    }


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_turn_that_a_worker_holds_keeps_them(ann: User, lea: User, site: Site) -> None:
    """Refused before anything is done; what waits or queues goes along."""
    waits = site.runs(lea, *ONE_GATE)
    runs = site.starts(lea, *ONE_GATE)
    taken(runs)
    type(runs).objects.filter(pk=runs.pk).update(state="running")
    with pytest.raises(TurnRuns):
        erase_user(lea, ann)
    lea.refresh_from_db()
    assert lea.is_active
    assert Conversation.objects.filter(owner=lea).count() == 2
    type(runs).objects.filter(pk=runs.pk).update(lease_until=0)
    assert erase_user(lea, ann) == 2
    assert not Conversation.objects.filter(pk=waits.conversation_id).exists()


def test_the_last_administrator_stays(ann: User, lea: User) -> None:
    User.objects.filter(pk=lea.pk).update(is_superuser=True)
    lea.refresh_from_db()
    with pytest.raises(LastAdministrator, match="make another one first"):
        erase_user(lea, ann)
    lea.refresh_from_db()
    assert (lea.username, lea.is_active) == (WHO[0], True)
    User.objects.filter(pk=ann.pk).update(is_superuser=True)
    assert erase_user(lea, ann) == 0


def test_a_name_that_somebody_chose_is_left_to_them(ann: User, lea: User) -> None:
    for taken_name in (f"erased-{lea.pk}", f"erased-{lea.pk}-2"):
        person(taken_name)
    erase_user(lea, ann)
    lea.refresh_from_db()
    assert lea.username == f"erased-{lea.pk}-3"
    erase_user(lea, ann)  # once more, as where it was broken off
    lea.refresh_from_db()
    assert lea.username == f"erased-{lea.pk}-3"


def test_the_command(ann: User, lea: User, site: Site) -> None:
    site.ended(lea, says("Mine."))
    out = io.StringIO()
    call_command("erase_user", WHO[0], by="ann", reason="She asked.", stdout=out)
    assert out.getvalue() == f"Erased leaving-lea, with 1 conversation. Now called erased-{lea.pk}.\n"
    for name, by in ((WHO[0], "ann"), ("ann", "nobody")):
        with pytest.raises(CommandError, match="no user"):
            call_command("erase_user", name, by=by, reason="Old.")


def test_a_request_that_came_before_adds_nothing(
    lea: User, ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it starts is refused from the moment on at which they are deactivated."""
    talk = site.ended(lea, says("Mine.")).conversation
    stopped = prompts.cancel_prompt(start_prompt(start_conversation(lea), lea, "Stop.").pk, lea)
    refused = []

    def late(conversation: Conversation, by: User, reason: str) -> Erasure:
        for start in (
            lambda: begin_conversation(lea, "My diary."),
            lambda: start_conversation(lea, "My diary"),
            lambda: start_prompt(talk, lea, "More."),
            lambda: continue_prompt(stopped.pk, lea),
        ):
            with pytest.raises(Deactivated, match="was deactivated, so nothing was sent"):
                start()
            refused.append(start)
        monkeypatch.setattr(people, "erase", erase)
        return erase(conversation, by, reason)

    monkeypatch.setattr(people, "erase", late)
    assert erase_user(User.objects.get(pk=lea.pk), ann) == 2
    assert len(refused) == 4
    assert not Prompt.objects.exists()


def test_what_came_while_they_were_erased_goes_too(
    lea: User, ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.ended(lea, says("Mine."))

    def late(conversation: Conversation, by: User, reason: str) -> Erasure:
        Conversation.objects.create(owner=lea, title="My diary")
        monkeypatch.setattr(people, "erase", erase)
        return erase(conversation, by, reason)

    monkeypatch.setattr(people, "erase", late)
    assert erase_user(lea, ann) == 2
    assert not Conversation.objects.exists()


def test_what_they_delete_themselves_at_the_same_moment_stops_nothing(
    lea: User, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_conversation(lea)

    def beaten(conversation: Conversation, by: User, reason: str) -> Erasure:
        erase(Conversation.objects.get(pk=conversation.pk), lea)
        return erase(conversation, by, reason)

    monkeypatch.setattr(people, "erase", beaten)
    assert erase_user(lea, ann) == 0
    assert known() == set()


def test_a_key_and_details_that_come_late_are_not_kept(lea: User, ann: User, rf: RequestFactory) -> None:
    """A request that was let in before, and writes after they are gone."""
    late = Details(rf.post("/"), lea, {"first_name": "Lea-again", "last_name": "", "email": lea.email})
    assert late.is_valid(), late.errors
    erase_user(User.objects.get(pk=lea.pk), ann)
    late.save()
    with pytest.raises(ValueError, match="was deactivated"):
        make_key(lea, "Lea-the-leaver's", ["read"])
    assert not ApiKey.objects.exists()
    assert not Account.objects.filter(user=lea).exists()
    assert User.objects.get(pk=lea.pk).first_name == ""


def test_of_starts_and_an_erasure_at_once_nothing_is_left(lea: User, ann: User) -> None:
    starts = [lambda n=n: begin_conversation(lea, f"Diary {n}.").pk for n in range(3)]
    came = at_once(*starts, lambda: erase_user(User.objects.get(pk=lea.pk), ann))
    assert [error for error in came if isinstance(error, Exception) and not isinstance(error, Deactivated)] == []
    assert came[-1] == sum(isinstance(each, int) for each in came[:-1])
    assert not Conversation.objects.exists()


@pytest.fixture
def shut_out_meanwhile(lea: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lea is deactivated between the moment at which a request of hers is let in and that at which it starts a turn."""
    cleaned = prompts.clean_message

    def late(*args: object) -> str:
        User.objects.filter(pk=lea.pk).update(is_active=False)
        return cleaned(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(prompts, "clean_message", late)


@pytest.mark.parametrize("place", ["start", "say"])
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
@pytest.mark.usefixtures("shut_out_meanwhile")
def test_a_page_says_so_and_keeps_the_text(client: Client, lea: User, place: str, headers: dict[str, str]) -> None:
    client.force_login(lea)
    address = reverse("say", args=[start_conversation(lea).pk]) if place == "say" else reverse("start")
    answer = client.post(address, {"input": "A long thought."}, headers=headers)
    assert answer.status_code == 403
    assert "The account was deactivated" in answer.text
    assert ("Your text is still here." if headers else "A long thought.</textarea>") in answer.text
    assert not Prompt.objects.exists()


@pytest.mark.usefixtures("shut_out_meanwhile")
def test_a_program_is_told_so(lea: User) -> None:
    talk = start_conversation(lea)
    error = error_of(with_key(lea).post(f"/api/conversations/{talk.pk}/prompts/", {"input": "Hi."}), 403)
    assert (error["code"], "was deactivated" in error["message"]) == ("forbidden", True)
