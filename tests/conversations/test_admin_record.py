"""The record and the people in the admin: read by whom it may be, changed by nobody, deleted by nobody."""

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.base import ContentFile
from django.test import Client

from conversations.models import Conversation, Erasure, File, Output, Prompt, Step
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
def test_staff_sees_the_record_by_permission_only(client: Client, story: Story, model: str) -> None:
    client.force_login(person("staff", is_staff=True))
    assert client.get(f"/admin/conversations/{model}/").status_code == 403
    assert f'href="/admin/conversations/{model}/"' not in client.get("/admin/").text
    client.force_login(person("reader", f"view_{model}", is_staff=True))
    assert client.get(f"/admin/conversations/{model}/").status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_people_of_the_site_are_sent_to_the_login(client: Client, story: Story, model: str) -> None:
    client.force_login(User.objects.get(username="anna"))
    assert client.get(f"/admin/conversations/{model}/")["Location"].startswith("/admin/login/")


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
