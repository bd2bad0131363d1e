"""Who may see what: the owner and nobody else; and changes need a POST from one of our own pages."""

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse

from conversations.models import File, Prompt
from tests.conversations.support import PASSWORD, Story, asking, person

pytestmark = pytest.mark.django_db

CHANGES = ("start", "say", "stop", "continue", "logout")


@pytest.fixture
def owner() -> User:
    return person("anna")


@pytest.fixture
def story(owner: User) -> Story:
    return asking(owner)[0]


@pytest.fixture
def file(story: Story) -> File:
    return File.objects.create(
        conversation=story.conversation,
        content=ContentFile(b"<script>alert(1)</script>", name="page.html"),
        name="page.html",
        media_type="text/html",
        size=25,
        sha256="0" * 64,
    )


def addresses(story: Story, file: File) -> dict[str, str]:
    return {
        "home": reverse("home"),
        "new": reverse("new"),
        "conversation": reverse("conversation", args=[story.conversation.pk]),
        "download": reverse("download", args=[file.pk]),
        "start": reverse("start"),
        "say": reverse("say", args=[story.conversation.pk]),
        "stop": reverse("stop", args=[story.prompt.pk]),
        "continue": reverse("continue", args=[story.prompt.pk]),
    }


@pytest.mark.parametrize("name", ["conversation", "download", "say", "stop", "continue"])
def test_others_find_nothing(client: Client, story: Story, file: File, name: str) -> None:
    for other in (person("bela"), person("chief", is_superuser=True, is_staff=True)):
        client.force_login(other)
        address = addresses(story, file)[name]
        response = client.post(address, {"input": "hello"}) if name in CHANGES else client.get(address)
        assert response.status_code == 404
    story.prompt.refresh_from_db()
    assert story.prompt.state == "waiting_for_approval"
    assert Prompt.objects.count() == 1


def test_lists_hold_ones_own_only(client: Client, story: Story) -> None:
    client.force_login(person("bela"))
    assert "Run it now." not in client.get("/").text
    assert "Run it now." not in client.get("/?q=now").text


@pytest.mark.parametrize("name", ["home", "new", "conversation", "download", "start", "say", "stop", "continue"])
def test_strangers_are_sent_to_the_login(client: Client, story: Story, file: File, name: str) -> None:
    address = addresses(story, file)[name]
    response = client.post(address, {"input": "hello"}) if name in CHANGES else client.get(address)
    assert response.status_code == 302
    assert response["Location"].startswith("/login/")


@pytest.mark.parametrize("name", ["start", "say", "stop", "continue"])
def test_nothing_changes_but_by_post(client: Client, owner: User, story: Story, file: File, name: str) -> None:
    client.force_login(owner)
    for ask in (client.get, client.head, client.put, client.delete):
        assert ask(addresses(story, file)[name]).status_code == 405
    story.prompt.refresh_from_db()
    assert not story.prompt.ended


@pytest.mark.parametrize("name", ["start", "say", "stop", "continue"])
def test_what_comes_from_elsewhere_is_refused(owner: User, story: Story, file: File, name: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    response = client.post(addresses(story, file)[name], {"input": "hello"})
    assert response.status_code == 403
    assert "Your request was not accepted" in response.text


def test_a_download_is_never_shown(client: Client, owner: User, file: File) -> None:
    client.force_login(owner)
    response = client.get(reverse("download", args=[file.pk]))
    assert response["Content-Disposition"] == 'attachment; filename="page.html"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert b"".join(response.streaming_content) == b"<script>alert(1)</script>"  # type: ignore[attr-defined]


def test_a_file_that_is_gone_is_not_found(client: Client, owner: User, file: File) -> None:
    file.content.delete(save=False)
    client.force_login(owner)
    assert client.get(reverse("download", args=[file.pk])).status_code == 404


def test_somebody_logs_in_and_out(client: Client, owner: User) -> None:
    refused = client.post("/login/", {"username": "anna", "password": "wrong"})
    assert "Wrong user name or password." in refused.text
    assert client.post("/login/", {"username": "anna", "password": PASSWORD})["Location"] == "/"
    assert client.get("/").status_code == 200
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").status_code == 302
    assert client.get("/").status_code == 302


def test_somebody_who_was_deactivated_is_out(client: Client, owner: User) -> None:
    client.force_login(owner)
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert client.get("/").status_code == 302


def test_every_page_forbids_scripts_but_our_own(client: Client, owner: User, story: Story) -> None:
    client.force_login(owner)
    for address in ("/", "/login/", f"/c/{story.conversation.pk}/", "/nothing-here/"):
        policy = client.get(address)["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
