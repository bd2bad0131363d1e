"""The record and the people in the admin: read by whom it may be, changed by nobody, deleted by nobody."""

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.base import ContentFile
from django.test import Client

from conversations.models import Conversation, Erasure, File, Output, Prompt, Redaction, Step
from conversations.prompts.start import start_conversation
from tests.conversations.support import Story, asking, person, says

pytestmark = pytest.mark.django_db

MODELS = ("conversation", "prompt", "output", "step", "file", "erasure")


@pytest.fixture
def chief(client: Client) -> User:
    user = person("chief", first_name="Mara", is_superuser=True, is_staff=True)
    client.force_login(user)
    return user


@pytest.fixture
def story() -> Story:
    story, _ = asking(person("anna"), "echo \u202e<script>")
    place = {
        "conversation": story.conversation,
        "name": "a\u202eb.txt",
        "media_type": "text/plain",
        "size": 1,
        "sha256": "0",
    }
    File.objects.create(content=ContentFile(b"x", name="x.txt"), **place)
    Erasure.objects.create(conversation_id=77, erased_by="anna", steps=3, reason="Asked for.")
    return story


@pytest.mark.parametrize("model", MODELS)
def test_administrators_read_and_change_nothing(client: Client, chief: User, story: Story, model: str) -> None:
    kinds = {kind._meta.model_name: kind for kind in (Conversation, Prompt, Output, Step, File, Erasure)}
    row = kinds[model]._default_manager.order_by("-pk")[0]
    base = f"/admin/conversations/{model}/"
    assert client.get(base).status_code == 200
    assert client.get(base, {"q": str(story.conversation.pk)}).status_code == 200
    html = client.get(f"{base}{row.pk}/change/")
    assert html.status_code == 200
    assert 'name="_save"' not in html.text
    assert "\u202e" not in html.text
    assert client.get(f"{base}add/").status_code == 403
    assert client.post(f"{base}{row.pk}/change/", {"title": "x", "state": "completed"}).status_code == 403
    assert client.post(f"{base}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(base, {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert kinds[model]._default_manager.filter(pk=row.pk).exists()


@pytest.mark.parametrize("model", MODELS)
def test_a_list_is_asked_for_no_text_that_a_database_refuses(client: Client, chief: User, model: str) -> None:
    base = f"/admin/conversations/{model}/"
    for query in ("q=%00", "id=%00", "conversation__id__exact=%00", "state__exact=%00", "p=%00", "%00=1"):
        assert client.get(f"{base}?{query}").headers["Location"] == f"{base}?e=1", query


@pytest.mark.parametrize("model", MODELS)
def test_staff_sees_the_record_by_permission_only(client: Client, story: Story, model: str) -> None:
    client.force_login(person("staff", is_staff=True))
    assert client.get(f"/admin/conversations/{model}/").status_code == 403
    assert f'href="/admin/conversations/{model}/"' not in client.get("/admin/").text
    client.force_login(person("reader", f"view_{model}", is_staff=True))
    assert client.get(f"/admin/conversations/{model}/").status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_members_are_told_that_it_is_not_for_them(client: Client, story: Story, model: str) -> None:
    client.force_login(User.objects.get(username="anna"))
    assert client.get(f"/admin/conversations/{model}/").status_code == 403


def test_links_lead_from_a_conversation_to_its_steps(client: Client, chief: User, story: Story) -> None:
    conversation, prompt = story.conversation.pk, story.prompt.pk
    prompts = f"/admin/conversations/prompt/?conversation__id__exact={conversation}"
    assert prompts in client.get("/admin/conversations/conversation/").text
    assert f"/admin/conversations/prompt/{prompt}/change/" in client.get(prompts).text
    steps = f"/admin/conversations/step/?prompt__id__exact={prompt}"
    assert steps in client.get(f"/admin/conversations/prompt/{prompt}/change/").text
    assert client.get(steps).text.count("/admin/conversations/step/") >= story.prompt.steps.count()


@pytest.mark.parametrize("model", ["prompt", "output", "step", "conversation"])
def test_lists_take_few_queries(
    client: Client, chief: User, story: Story, model: str, django_assert_max_num_queries: object
) -> None:
    for _ in range(10):
        story.asks_model()
        story.answers(says("Hello."))
    with django_assert_max_num_queries(9):  # type: ignore[operator]
        client.get(f"/admin/conversations/{model}/")


def test_nobody_deletes_a_user(client: Client, chief: User) -> None:
    anna = person("anna")
    assert client.post(f"/admin/auth/user/{anna.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post("/admin/auth/user/", {"action": "delete_selected", "_selected_action": [anna.pk], "post": "yes"})
    assert User.objects.filter(pk=anna.pk).exists()
    assert client.get(f"/admin/auth/user/{anna.pk}/change/").status_code == 200
    assert client.get("/admin/auth/user/add/").status_code == 200
    assert client.get(f"/admin/auth/group/{Group.objects.get().pk}/change/").status_code == 200


def test_counting_stops_where_nobody_reads_on(
    client: Client, chief: User, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conversations.admin.base.COUNT_MOST", 3)
    assert Step.objects.count() > 3
    assert "3 steps" in " ".join(client.get("/admin/conversations/step/").text.split())


def test_a_step_is_redacted_for_a_reason_by_who_may(client: Client, chief: User, story: Story) -> None:
    """Asked on a page of its own; what it held stands nowhere in the admin then, and who took it out does."""
    anna = story.conversation.owner
    Story(anna, "My password is swordfish.", start_conversation(anna)).ends()
    step = Step.objects.get(payload__contains="swordfish")
    change, address = f"/admin/conversations/step/{step.pk}/change/", f"/admin/conversations/step/{step.pk}/redact/"
    assert f'href="{address}"' in client.get(change).text
    asks = client.get(address).text
    assert "This cannot be undone." in asks
    assert client.post(address, {"reason": " "}).status_code == 400
    assert client.get(f"/admin/conversations/step/{10**9}/redact/").status_code == 404
    assert client.post(address, {"reason": "A password\x00."}).headers["Location"] == change
    html = client.get(change).text
    assert "swordfish" not in html
    assert f"Redacted step {step.seq}." in html
    assert "by chief" in html
    assert Redaction.objects.get().reason == "A password\ufffd."
    assert f'href="{address}"' not in html
    assert client.post(address, {"reason": "Again."}).status_code == 409
    staff = person("staff", "view_step", is_staff=True)
    client.force_login(staff)
    other = Step.objects.filter(type="action_call").exclude(pk=step.pk)[0]
    assert client.get(f"/admin/conversations/step/{other.pk}/change/").status_code == 200
    assert client.post(f"/admin/conversations/step/{other.pk}/redact/", {"reason": "Mine."}).status_code == 403
    assert Redaction.objects.count() == 1


def test_a_person_is_erased_for_a_reason_by_an_administrator(client: Client, chief: User, story: Story) -> None:
    """From the list, by way of a page that asks; the last administrator is told why not."""
    story.ends()
    anna, users = story.conversation.owner, "/admin/auth/user/"
    address = f"{users}{anna.pk}/erase/"
    marked = {"action": "erase_one", "_selected_action": [anna.pk]}
    assert client.post(users, marked).headers["Location"] == address
    both = client.post(users, marked | {"_selected_action": [anna.pk, chief.pk]}, follow=True)
    assert "Select one person at a time." in both.text
    assert "Erase anna and 1 conversation with" in client.get(address).text
    assert client.post(address, {"reason": ""}).status_code == 400
    done = client.post(address, {"reason": "She asked."}, follow=True)
    assert "Erased anna, with 1 conversation." in done.text
    assert User.objects.get(pk=anna.pk).username == f"erased-{anna.pk}"
    refused = client.post(f"{users}{chief.pk}/erase/", {"reason": "Bye."})
    assert refused.status_code == 409
    assert "make another one first" in refused.text
    client.force_login(person("staff", "view_user", "change_user", is_staff=True))
    assert client.get(f"{users}{chief.pk}/erase/").status_code == 403
    assert "Erase this person" not in client.get(users).text
