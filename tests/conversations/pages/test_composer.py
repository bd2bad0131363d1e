"""The composer's form: files are sent and shown with a message, and a refusal says what was kept."""

from __future__ import annotations

import re
from errno import EACCES, EDQUOT, ENOSPC
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from conversations.database.disk import report_space
from conversations.files.uploads import Upload
from conversations.models import Conversation, File, Prompt
from conversations.pages.chat.composer import GIVEN_MOST
from conversations.pages.chat.live import catch_up
from conversations.prompts.start import start_prompt
from conversations.usage.storage import MB
from tests.conversations.live_page import parsed
from tests.conversations.support import Story, asking, person

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def folders(settings: Any, tmp_path: Path) -> None:
    """A data folder of this test's own, and a small limit."""
    settings.MEDIA_ROOT, settings.AGENTSITE_WORKSPACES = tmp_path / "files", tmp_path / "workspaces"
    settings.AGENTSITE_UPLOAD_MB = 1


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna")
    client.force_login(user)
    return user


def csv(name: str = "sales.csv", size: int = 8) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, b"x" * size, "text/csv")


def test_a_conversation_begins_with_files_and_shows_them(client: Client, owner: User) -> None:
    """By a plain multipart form: it works without scripts."""
    assert 'enctype="multipart/form-data"' in client.get("/new/").text
    client.post("/c/", {"input": "Sum up.", "files": [csv(), csv("a<b>.csv", 2048)]})
    files = File.objects.order_by("pk")
    said = parsed(client.get(f"/c/{Conversation.objects.get().pk}/").text).find(f"b-{Prompt.objects.get().pk}-said")
    assert said
    assert said.text() == "Sum up. sales.csv 8 bytes a<b>.csv 2.0 KB"
    links = [each.elements[0].attributes["href"] for each in said.elements[-1].elements]
    assert links == [f"/files/{file.pk}/view/" for file in files]
    answer = client.get(f"/files/{files[0].pk}/")
    assert (b"".join(answer), answer["Content-Disposition"]) == (b"x" * 8, 'attachment; filename="sales.csv"')
    client.force_login(person("bob"))
    assert client.get(links[0]).status_code == 404
    assert client.get(f"/files/{files[0].pk}/").status_code == 404


def test_files_alone_are_a_message_that_says_nothing(client: Client, owner: User) -> None:
    client.post("/c/", {"input": "", "files": csv()})
    prompt = Prompt.objects.get()
    said = parsed(client.get(f"/c/{prompt.conversation_id}/").text).find(f"b-{prompt.pk}-said")
    assert said
    assert said.text() == "sales.csv 8 bytes"


def test_an_open_page_is_sent_the_files_once(client: Client, owner: User) -> None:
    """The version of the message includes its files, so that a page that has it is not sent it again."""
    story = Story(owner)
    story.ends()
    stands_at = Conversation.objects.get().seq
    prompt = start_prompt(story.conversation, owner, "Sum up.", files=[Upload.of(csv())])
    html, _ = catch_up(story.conversation.pk, stands_at)
    assert "sales.csv" in html
    version = parsed(html).find(f"b-{prompt.pk}-said")
    page = parsed(client.get(f"/c/{story.conversation.pk}/").text).find(f"b-{prompt.pk}-said")
    assert version
    assert page
    assert version.version == page.version
    File.objects.update(name="other.csv")
    renamed = parsed(client.get(f"/c/{story.conversation.pk}/").text).find(f"b-{prompt.pk}-said")
    assert renamed
    assert renamed.version != page.version


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([("big.csv", MB + 1)], "big.csv is too large. A file can have up to 1 MB."),
        ([(f"{n}.csv", 1) for n in range(11)], "You attached 11 files; a message can have 10."),
    ],
)
def test_files_that_are_too_much_keep_the_text(
    client: Client, owner: User, files: list[tuple[str, int]], why: str
) -> None:
    """A page without scripts cannot keep the files, and says so; one with scripts still has them."""
    for address in ("/c/", f"/c/{Story(owner).ends().conversation_id}/prompts/"):
        before = Prompt.objects.count()
        sent = {"input": "Sum up.", "files": [csv(*file) for file in files]}
        plain = client.post(address, sent)
        assert plain.status_code == 400
        assert why in plain.text
        assert "Your text is still here; attach the files again." in plain.text
        assert "Sum up.</textarea>" in plain.text
        open_page = client.post(address, sent | {"files": [csv(*file) for file in files]}, headers=HTMX)
        assert open_page.status_code == 400
        assert why in open_page.text
        assert "Your text and your files are still here." in open_page.text
        assert (Prompt.objects.count(), File.objects.count()) == (before, 0)


def test_a_file_that_cannot_be_stored_keeps_the_text(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full, or the agent closed its workspace: the page says so, and nothing is sent."""
    talk = Story(owner).ends().conversation_id
    for fails, errno, status, why in (
        ("os.fsync", ENOSPC, 507, "The site&#x27;s disk is full, so nothing was stored"),
        ("os.rename", EACCES, 400, "sales.csv could not be stored: the site may not write to its folder"),
        ("django.core.files.storage.FileSystemStorage.save", EDQUOT, 507, "The site&#x27;s disk is full"),
    ):
        for address in ("/c/", f"/c/{talk}/prompts/"):
            before = Conversation.objects.count(), Prompt.objects.count()
            with monkeypatch.context() as patch:
                patch.setattr(fails, Mock(side_effect=OSError(errno, "no")))
                refused = client.post(address, {"input": "Sum up.", "files": csv()})
            assert refused.status_code == status
            assert why in refused.text
            assert "Sum up.</textarea>" in refused.text
            assert (Conversation.objects.count(), Prompt.objects.count(), File.objects.count()) == (*before, 0)
    report_space()  # other tests' pages have nothing to say of it


def test_a_message_with_files_while_a_turn_waits_is_refused(client: Client, owner: User) -> None:
    story, _ = asking(owner)
    response = client.post(f"/c/{story.conversation.pk}/prompts/", {"input": "And?", "files": csv()}, headers=HTMX)
    assert response.status_code == 409
    assert "Your text and your files are still here." in response.text
    assert not File.objects.exists()


def test_an_open_page_is_led_to_the_conversation_it_began(client: Client, owner: User) -> None:
    """The same message again leads there too; a different one under its key is kept, and gets a new key."""
    begun = [client.post("/c/", {"input": "Hi.", "key": "k", "files": csv()}, headers=HTMX) for _ in range(2)]
    address = f"/c/{Conversation.objects.get().pk}/#now"
    assert [(each.status_code, each["HX-Redirect"]) for each in begun] == [(200, address)] * 2
    other = client.post("/c/", {"input": "Bye.", "key": "k"}, headers=HTMX)
    assert other.status_code == 400
    assert "did arrive" in other.text
    key = parsed(other.text).find("key")
    assert key
    assert key.attributes["value"] not in ("", "k")


def test_a_key_is_kept_as_valid_text(client: Client, owner: User) -> None:
    assert client.post("/c/", {"input": "Hi.", "key": "a\x00b"}).status_code == 302
    assert Prompt.objects.get().request_key == "a\ufffdb"


def test_stopping_keeps_what_was_typed(client: Client, owner: User) -> None:
    """Even if the browser sends the files along, because it runs no scripts."""
    story, _ = asking(owner)
    response = client.post(f"/prompts/{story.prompt.pk}/cancel/", {"input": "better so", "files": csv()})
    assert "better so</textarea>" in response.text
    assert not File.objects.exists()


def field(page: str) -> str:
    """What is in the message field."""
    found = re.search(r'<textarea id="message".*?>\n(.*?)</textarea>', page, re.DOTALL)
    assert found
    return unescape(found[1])


@pytest.mark.parametrize("page", ["/", "/new/", "conversation"])
def test_a_link_puts_a_message_into_the_field_and_sends_nothing(client: Client, owner: User, page: str) -> None:
    story = Story(owner)
    story.ends()
    before = Prompt.objects.count()
    at = story.conversation.get_absolute_url() if page == "conversation" else page
    shown = client.get(at, {"message": 'run echo "</textarea>"'}).text
    assert field(shown) == 'run echo "</textarea>"'
    assert Prompt.objects.count() == before
    assert field(client.get(at).text) == ""
    long = client.get(at, {"message": "x" * (GIVEN_MOST + 1)}).text
    assert "x" * GIVEN_MOST in long
    assert "x" * (GIVEN_MOST + 1) not in long
