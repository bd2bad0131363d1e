"""The pages of workflows: what a person sees, what a form starts, and what it never loses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pydantic import BaseModel, Field, SecretStr

from conversations.models import Conversation, KillSwitch, Prompt, Quota
from conversations.prompts.start import start_conversation, start_prompt
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.workflows import shop
from workflows import Flow, workflow
from workflows.models import WorkflowSetting
from workflows.running import start_run

pytestmark = pytest.mark.django_db


class Trip(BaseModel):
    city: str
    nights: int = Field(default=2, ge=1, le=30)
    by_train: bool = True
    notes: str = ""


class Door(BaseModel):
    name: str
    password: SecretStr


@workflow("shop.ping", title="Ping", category=shop.SHOP)
async def ping(flow: Flow[Any]) -> str:
    """Says that it is there."""
    return "pong"


@workflow("shop.trip", title="Book a trip", category=shop.SHOP, confirm=True)
async def trip(flow: Flow[Trip]) -> str:
    """Books a trip."""
    return flow.input.city


@workflow("shop.count", title="Count the files", category=shop.SHOP, workspace=True)
async def count(flow: Flow[Any]) -> int:
    """Counts what lies in a workspace."""
    return 0


@workflow("shop.door", title="Open a door", category=shop.SHOP)
async def door(flow: Flow[Door]) -> None:
    """Opens a door."""


ORDER = reverse("workflow", args=["shop.order"])
TRIP = reverse("workflow", args=["shop.trip"])


@workflow("shop.tidy", title="Tidy up", category=shop.SHOP, workspace="required")
async def tidy(flow: Flow[Any]) -> None:
    """Tidies up a workspace."""


INSTALLED = (*shop.ALL, ping, trip, count, door, tidy)


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with shop.installed(site, monkeypatch, workflows=INSTALLED):
        yield


@pytest.fixture
def ann() -> User:
    return person("ann")


@pytest.fixture
def bob() -> User:
    return person("bob")


@pytest.fixture
def client(ann: User) -> Client:
    return signed_in(ann)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text_of(response: Any) -> str:
    return " ".join(response.content.decode().split())


def order(**more: str) -> dict[str, str]:
    return {"key": "k1", "line-0": "paper", "number-1": "3", **more}


def test_the_selector_lists_by_category_what_a_person_may_run(client: Client, ann: User) -> None:
    page = text_of(client.get(reverse("workflows")))
    assert "Order something" in page
    assert "Orders pieces of an item, with an approval." in page
    assert f"{len(INSTALLED)} workflows" in page
    assert "You ran this" not in page
    start_run(shop.order, ann, {"item": "paper"})
    page = text_of(client.get(reverse("workflows")))
    assert page.count("You ran this") == 2  # in its category, and under "Recent"
    assert '<h2 id="recent">Recent</h2>' in page


def test_the_selector_searches_names_titles_and_descriptions(client: Client) -> None:
    page = text_of(client.get(reverse("workflows"), {"q": "PIECES approval"}))
    assert ("Order something" in page, "Count the files" in page) == (True, False)
    assert "No workflow matches “zebra”." in text_of(client.get(reverse("workflows"), {"q": "zebra"}))


def test_without_workflows_the_selector_says_so(client: Client) -> None:
    for each in INSTALLED:
        WorkflowSetting.objects.create(name=each.name, enabled=False)
    assert "No workflows are available to you yet." in text_of(client.get(reverse("workflows")))


def test_what_is_listed_to_others_says_why_they_may_not_run_it(client: Client) -> None:
    setting = WorkflowSetting.objects.create(name="shop.order", permission="auth.add_user")
    assert "Order something" not in text_of(client.get(reverse("workflows")))
    assert client.get(ORDER).status_code == 404
    WorkflowSetting.objects.filter(pk=setting.pk).update(list_to_others=True)
    why = "It needs the permission auth.add_user, which you do not have."
    assert why in text_of(client.get(reverse("workflows")))
    page = client.get(ORDER)
    assert (page.status_code, why in text_of(page), "Start</button>" in text_of(page)) == (403, True, False)


def test_a_form_starts_a_run_and_goes_to_its_page(client: Client) -> None:
    started = client.post(ORDER, order())
    run = Prompt.objects.get()
    assert started["Location"] == f"/c/{run.conversation_id}/#now"
    assert (run.input, run.conversation.kind) == ("/shop.order item=paper pieces=3", "run")
    page = text_of(client.get(started["Location"]))
    assert f'<a href="{ORDER}">Order something</a>' in page
    assert 'id="composer"' not in page


def test_a_form_that_is_sent_twice_starts_one_run(client: Client) -> None:
    first, second = (client.post(ORDER, order()) for _ in range(2))
    assert first["Location"] == second["Location"]
    assert Prompt.objects.count() == 1


def test_a_form_that_has_started_another_run_says_so_and_can_start_again(client: Client) -> None:
    client.post(ORDER, order())
    again = client.post(ORDER, order(**{"line-0": "pens"}))
    run = Prompt.objects.get()
    page = text_of(again)
    assert (again.status_code, "has already started a run" in page) == (409, True)
    assert f"/c/{run.conversation_id}/#now" in page
    assert 'value="pens"' in page
    assert 'name="key" value="k1"' not in page
    client.post(ORDER, order(**{"line-0": "pens", "key": again.context["run"].key}))
    assert Prompt.objects.count() == 2


def test_what_is_wrong_stands_at_its_field_and_nothing_typed_is_lost(client: Client) -> None:
    page = client.post(ORDER, order(**{"line-0": "a", "number-1": "many"}))
    assert page.status_code == 400
    words = text_of(page)
    assert "Nothing has started." in words
    assert "Enter a whole number." in words
    assert "at least 2 characters" in words
    assert ('value="a"' in words, 'value="many"' in words) == (True, True)
    assert not Prompt.objects.exists()


def test_a_workflow_without_input_has_a_button_to_start(client: Client) -> None:
    address = reverse("workflow", args=["shop.ping"])
    assert "Start</button>" in text_of(client.get(address))
    client.post(address, {"key": "k1"})
    assert Prompt.objects.get().input == "/shop.ping"


def test_confirming_asks_once_more_and_starts_what_was_typed(client: Client) -> None:
    typed = {"key": "k1", "line-0": "Lyon", "number-1": "", "choice-2": "false", "line-3": ""}
    asked = client.post(TRIP, typed)
    assert (asked.status_code, Prompt.objects.count()) == (200, 0)
    page = text_of(asked)
    assert "You are about to start “Book a trip”" in page
    assert ("<dd >Lyon</dd>" in page, "<dt>Nights</dt> <dd >2</dd>" in page) == (True, True)  # and what it did not say
    kept = dict(asked.context["run"].kept)
    assert kept == {name: text for name, text in typed.items() if name != "key"}
    changed = client.post(TRIP, {**kept, "key": "k2", "change": "1"})
    assert (changed.status_code, 'value="Lyon"' in text_of(changed), Prompt.objects.count()) == (200, True, 0)
    client.post(TRIP, {**kept, "key": "k2", "confirmed": "1"})
    assert Prompt.objects.get().input == "/shop.trip city=Lyon by_train=false"


def test_confirming_never_shows_what_is_wrong(client: Client) -> None:
    refused = client.post(TRIP, {"key": "k1", "line-0": "", "confirmed": "1"})
    assert (refused.status_code, Prompt.objects.count()) == (400, 0)
    assert "Enter a value." in text_of(refused)


def test_a_link_fills_in_the_form_says_so_and_runs_nothing(client: Client) -> None:
    page = client.get(TRIP, {"city": "Lyon", "nights": "many", "by_train": "No", "admin": "1", "notes": "n" * 200})
    words = text_of(page)
    assert not Prompt.objects.exists()
    assert "A link filled in City, Nights, By train, Notes." in words
    assert "The form has no field for admin." in words
    assert ('value="Lyon"' in words, 'value="many"' in words) == (True, True)
    assert "Enter a whole number." in words
    assert 'value="false" checked' in words
    assert 'name="text-3"' in words  # a long text in a field that shows all of it
    posted = {"key": "k1", "confirmed": "1", "line-0": "Lyon", "number-1": "3", "text-3": "n" * 200}
    client.post(TRIP, posted)
    assert "n" * 200 in (Prompt.objects.get().input or "")


def test_a_link_hides_nothing(client: Client) -> None:
    """Characters that nobody sees are shown as escapes, and a choice that there is not is not chosen."""
    words = text_of(client.get(TRIP, {"city": "Ly\u202eon", "by_train": "sometimes"}))
    assert r"Ly\u202eon" in words
    assert "This is not one of the choices." in words


def test_a_link_may_name_a_field_several_times(client: Client) -> None:
    words = text_of(client.get(f"{TRIP}?notes=one&notes=two"))
    assert "one two</textarea>" in words


def test_only_forms_with_secrets_are_not_kept_by_browsers(client: Client) -> None:
    door = client.get(reverse("workflow", args=["shop.door"]))
    assert ("no-store" in door["Cache-Control"], client.get(ORDER).has_header("Cache-Control")) == (True, False)


def test_a_link_fills_in_no_secret(client: Client) -> None:
    address = reverse("workflow", args=["shop.door"])
    words = text_of(client.get(address, {"name": "Front", "password": "hunter2"}))
    assert ('value="Front"' in words, "hunter2" in words) == (True, False)


def test_the_workspace_is_one_of_the_persons_chats_and_waits_for_the_run(client: Client, ann: User, bob: User) -> None:
    chat, other = start_conversation(ann, "Shelves"), start_conversation(bob, "Bob's")
    address = reverse("workflow", args=["shop.count"])
    page = text_of(client.get(address))
    assert f'<option value="{chat.pk}">Shelves</option>' in page
    assert "the chat waits until the run has ended." in page
    assert "Bob&#x27;s" not in page
    assert "Workspace" not in text_of(client.get(ORDER))
    refused = client.post(address, {"key": "k1", "conversation": str(other.pk)})
    assert (refused.status_code, "Choose one of your chats." in text_of(refused)) == (400, True)
    client.post(address, {"key": "k2", "conversation": str(chat.pk)})
    assert Prompt.objects.get().conversation == chat


def test_a_chat_with_a_turn_in_progress_cannot_be_the_workspace(client: Client, ann: User) -> None:
    chat = start_conversation(ann, "Shelves")
    start_prompt(chat, ann, "Count them.")
    refused = client.post(reverse("workflow", args=["shop.count"]), {"key": "k1", "conversation": str(chat.pk)})
    page = text_of(refused)
    assert (refused.status_code, Prompt.objects.count()) == (409, 1)
    assert "A turn is in progress in this chat." in page
    assert f'<option value="{chat.pk}" selected>' in page


def test_a_form_that_was_opened_from_a_chat_runs_in_it(client: Client, ann: User, bob: User) -> None:
    chat, other = start_conversation(ann, "Shelves"), start_conversation(bob)
    page = text_of(client.get(reverse("workflow-in", args=["shop.order", chat.pk]), {"item": "paper"}))
    assert f'<option value="{chat.pk}" selected>' in page
    assert "the chat waits until the run has ended." in page
    own = {"from": str(chat.pk), "conversation": "", "line-0": "a"}
    assert f'<option value="{chat.pk}">' in text_of(client.post(ORDER, order(**own)))  # it can still be chosen
    client.post(ORDER, order(**{"conversation": str(chat.pk), "from": str(chat.pk)}))
    assert Prompt.objects.get().conversation == chat
    gone = client.post(ORDER, order(key="k2", conversation="99999"))
    assert (gone.status_code, "no longer exists" in text_of(gone), Prompt.objects.count()) == (400, True, 1)
    assert client.get(reverse("workflow-in", args=["shop.order", other.pk])).status_code == 404


def test_what_refuses_a_start_is_said_and_the_form_stays_filled(client: Client, ann: User) -> None:
    root = person("root", is_superuser=True)
    switch = KillSwitch.objects.create(on_by=f"user:{root.pk}", reason="The bank called.")
    stopped = client.post(ORDER, order())
    assert (stopped.status_code, 'value="paper"' in text_of(stopped)) == (409, True)
    assert "The bank called." in text_of(stopped)
    switch.delete()
    Quota.objects.update_or_create(user=ann, defaults={"running_prompts": 1})
    start_prompt(start_conversation(ann), ann, "Hello.")
    over = client.post(ORDER, order())
    assert (over.status_code, 'value="paper"' in text_of(over)) == (429, True)
    assert "Nothing has started." in text_of(over)


def test_who_lost_the_right_is_told_and_keeps_what_was_typed(client: Client, ann: User) -> None:
    start_run(shop.order, ann, {"item": "pens"})
    WorkflowSetting.objects.create(name="shop.order", enabled=False)
    refused = client.post(ORDER, order())
    assert (refused.status_code, Prompt.objects.count()) == (403, 1)
    assert "An administrator has turned this workflow off." in text_of(refused)
    assert "An administrator has turned" in text_of(client.get(ORDER))  # they ran it before: its runs are theirs
    assert client.get(reverse("workflow-runs", args=["shop.order"])).status_code == 200


def test_runs_are_listed_with_input_state_and_result(client: Client, ann: User, bob: User, site: Site) -> None:
    start_run(ping, ann, {})
    start_run(shop.fail, ann, {})
    start_run(shop.order, bob, {"item": "bobs-things"})
    run = start_run(shop.order, ann, {"item": "paper", "pieces": 3})
    site.works()
    orders = text_of(client.get(reverse("workflow-runs", args=["shop.order"])))
    assert ("paper" in orders, "bobs-things" in orders) == (True, False)
    assert "Waiting for a decision" in orders
    assert reverse("workflow-again", args=["shop.order", run.pk]) in orders
    pings = text_of(client.get(reverse("workflow-runs", args=["shop.ping"])))
    assert ("Without input" in pings, "pong" in pings, "Completed" in pings, "took" in pings) == (True,) * 4
    assert "ValueError: The shop is closed." in text_of(client.get(reverse("workflow-runs", args=["shop.fail"])))


def test_the_page_of_a_run_has_its_card_then_its_result_and_the_way_to_run_it_again(
    client: Client, ann: User, site: Site
) -> None:
    run = start_run(shop.order, ann, {"item": "paper", "pieces": 3})
    page = f"/c/{run.conversation_id}/"
    site.works()
    waiting = text_of(client.get(page))
    assert "This run is waiting for you" in waiting
    assert ('<article class="ask' in waiting, "Run again" in waiting, "Ask again" in waiting) == (True, False, False)
    site.approves(run, ann)
    site.works()
    ended = text_of(client.get(page))
    assert "This run has ended." in ended
    assert ended.count("Run again") == 1
    assert f'href="{reverse("workflow-again", args=["shop.order", run.pk])}"' in ended
    failed = start_run(shop.fail, ann, {})
    site.works()
    words = text_of(client.get(f"/c/{failed.conversation_id}/"))
    assert ("This run failed" in words, "The shop is closed." in words, words.count("Run again")) == (True, True, 1)


def test_run_again_opens_the_form_with_the_input_of_that_run(client: Client, ann: User, bob: User, site: Site) -> None:
    run = start_run(shop.order, ann, {"item": "paper", "pieces": 3})
    site.works()
    address = reverse("workflow-again", args=["shop.order", run.pk])
    words = text_of(client.get(address))
    assert ('value="paper"' in words, 'value="3"' in words) == (True, True)
    assert "Filled in from" in words
    assert Prompt.objects.count() == 1
    theirs = start_run(shop.order, bob, {"item": "pens"})
    assert client.get(reverse("workflow-again", args=["shop.order", theirs.pk])).status_code == 404
    again = client.post(reverse("again", args=[run.pk]))
    assert (again["Location"], Prompt.objects.count()) == (address, 2)


def test_run_again_of_a_run_in_a_chat_is_in_that_chat(client: Client, ann: User, site: Site) -> None:
    chat = start_conversation(ann, "Shelves")
    run = start_run(shop.order, ann, {"item": "paper"}, conversation=chat)
    words = text_of(client.get(reverse("workflow-again", args=["shop.order", run.pk])))
    assert f'<option value="{chat.pk}" selected>' in words


def test_run_again_asks_for_secrets_anew(client: Client, ann: User) -> None:
    run = start_run(door, ann, {"name": "Front", "password": "hunter2"})
    words = text_of(client.get(reverse("workflow-again", args=["shop.door", run.pk])))
    assert ('value="Front"' in words, "hunter2" in words) == (True, False)
    assert "hunter2" not in text_of(client.get(reverse("workflow-runs", args=["shop.door"])))


def test_a_line_in_a_chat_starts_the_workflow_there(client: Client, ann: User) -> None:
    chat = start_conversation(ann)
    client.post(reverse("say", args=[chat.pk]), {"input": "/shop.order item=paper pieces=3", "key": "k1"})
    run = Prompt.objects.get()
    assert (run.policy, run.conversation, run.input) == (
        "workflow:shop.order",
        chat,
        "/shop.order item=paper pieces=3",
    )


def test_a_line_that_lacks_something_opens_the_form_filled(client: Client, ann: User) -> None:
    chat = start_conversation(ann)
    opened = client.post(reverse("say", args=[chat.pk]), {"input": "/shop.order pieces=3", "key": "k1"})
    assert opened["Location"] == f"{reverse('workflow-in', args=['shop.order', chat.pk])}?pieces=3"
    assert 'value="3"' in text_of(client.get(opened["Location"]))
    confirmed = client.post(reverse("start"), {"input": "/shop.trip city=Lyon", "key": "k2"})
    assert confirmed["Location"] == f"{TRIP}?city=Lyon"
    secret = client.post(reverse("start"), {"input": "/shop.door password=hunter2", "key": "k3"})
    assert secret["Location"] == reverse("workflow", args=["shop.door"])
    assert not Prompt.objects.exists()


def test_a_line_of_a_workflow_that_is_off_is_no_message(client: Client, ann: User) -> None:
    """A model would read the password in it, and so would the record."""
    WorkflowSetting.objects.create(name="shop.door", enabled=False)
    chat = start_conversation(ann)
    told = client.post(reverse("say", args=[chat.pk]), {"input": "/shop.door password=hunter2222", "key": "k1"})
    assert "turned this workflow off" in text_of(told)
    assert not Prompt.objects.exists()


def test_a_workflow_that_needs_a_chat_asks_for_one(client: Client, ann: User, site: Site) -> None:
    page = reverse("workflow", args=["shop.tidy"])
    refused = client.post(page, {"key": "k1"})
    assert (refused.status_code, "you have none yet." in text_of(refused)) == (400, True)
    chat = start_conversation(ann, "Plans")
    assert "Choose one of your chats." in text_of(client.post(page, {"key": "k1"}))
    assert client.post(page, {"key": "k1", "conversation": chat.pk}).status_code == 302
    assert Prompt.objects.get().conversation == chat


def test_a_line_in_a_new_conversation_is_a_run_of_its_own(client: Client) -> None:
    started = client.post(reverse("start"), {"input": "/shop.ping", "key": "k1"})
    run = Prompt.objects.get()
    assert (run.conversation.kind, started["Location"]) == ("run", f"/c/{run.conversation_id}/#now")


def test_a_word_that_names_no_workflow_is_a_message(client: Client, ann: User) -> None:
    WorkflowSetting.objects.create(name="shop.ping", enabled=False)
    for number, text in enumerate(("/nothing here", "/shop.ping", "What is /shop.order?")):
        client.post(reverse("start"), {"input": text, "key": f"k{number}"})
    assert set(Prompt.objects.values_list("policy", flat=True)) == {"agent"}


def test_a_line_that_cannot_be_read_stays_in_the_field(client: Client, ann: User) -> None:
    chat = start_conversation(ann)
    for text in ("/shop.order item='paper", "/shop.order colour=red"):
        refused = client.post(reverse("say", args=[chat.pk]), {"input": text, "key": "k1"})
        assert refused.status_code == 400
        assert "Your text is still here." in text_of(refused)
    assert not Prompt.objects.exists()


def test_the_menu_of_the_composer_has_what_the_person_may_run(client: Client, ann: User) -> None:
    WorkflowSetting.objects.create(name="shop.fail", permission="auth.add_user", list_to_others=True)
    chat = start_conversation(ann)
    menu = text_of(client.get(reverse("workflow-menu"), {"in": str(chat.pk)}))
    assert ('data-name="shop.order"' in menu, 'data-name="shop.fail"' in menu) == (True, False)
    assert f'href="{reverse("workflow-in", args=["shop.order", chat.pk])}"' in menu


def test_lists_leave_out_runs_unless_they_wait(client: Client, ann: User, site: Site) -> None:
    start_conversation(ann, "A chat")
    start_run(ping, ann, {})
    run = start_run(shop.order, ann, {"item": "paper"})
    site.works()
    listed = client.get(reverse("list")).context["sidebar"]
    titles = {group.title: [str(row.conversation) for row in group.rows] for group in listed.groups}
    assert titles == {"Waiting for you": ["Order something"], "Today": ["A chat"]}
    runs = client.get(reverse("list"), {"runs": "1"}).context["sidebar"]
    assert {str(row.conversation) for group in runs.groups for row in group.rows} == {"Order something", "Ping"}
    assert "item=paper" in text_of(client.get(reverse("list"), {"runs": "1"}))
    for query, asked, found in (("Ping", {}, 0), ("Ping", {"runs": "1"}, 1), ("chat", {"runs": "1"}, 0)):
        groups = client.get(reverse("list"), {"q": query, **asked}).context["sidebar"].groups
        assert sum(len(group.rows) for group in groups) == found, (query, asked)
    assert Conversation.objects.get(pk=run.conversation_id).kind == "run"


def test_pages_are_for_people_who_are_signed_in() -> None:
    for address in (
        reverse("workflows"),
        ORDER,
        reverse("workflow-runs", args=["shop.order"]),
        reverse("workflow-menu"),
    ):
        assert Client().get(address)["Location"].startswith("/login/")
