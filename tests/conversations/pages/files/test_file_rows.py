"""Files in a conversation: the rows of those that tools made, and those that came with a message."""

from __future__ import annotations

from pathlib import Path

from django.contrib.auth.models import User
from django.test import Client

from conversations.models import File
from tests.conversations.pages.files.filing import SVG, filed, png
from tests.conversations.support import Story


def told(ann: User, *files: tuple[str, bytes]) -> tuple[Story, list[File]]:
    """A turn in which a tool made these files."""
    story = Story(ann)
    story.asks_model()
    call = story.call("report.write")
    story.answers(call)
    made = [filed(story.conversation, name, content) for name, content in files]
    for file in made:
        story.emits(call, "file", file=file.pk, name=file.name, summary="")
    return story, made


def page(client: Client, story: Story) -> str:
    return " ".join(client.get(f"/c/{story.conversation.pk}/").text.split())


def test_a_file_can_be_shown_and_downloaded(client: Client, ann: User) -> None:
    story, [file] = told(ann, ("q3.md", b"# Q3"))
    html = page(client, story)
    assert f'<a class="btn quiet" href="/files/{file.pk}/view/" aria-label="Show q3.md" data-show>Show</a>' in html
    assert f'href="/files/{file.pk}/" aria-label="Download q3.md"' in html


def test_an_image_is_shown_at_once_in_its_size(client: Client, ann: User) -> None:
    story, [chart, logo] = told(ann, ("chart.png", png(640, 480)), ("logo.svg", SVG))
    html = page(client, story)
    for file, more in ((chart, ' width="640" height="480"'), (logo, "")):
        image = f'<img src="/files/{file.pk}/image/" alt="{file.name}" loading="lazy"{more}'
        assert f'<a class="picture" href="/files/{file.pk}/view/"> {image}' in html
    assert "data-show" not in html


def test_what_only_claims_to_be_an_image_is_not(client: Client, ann: User) -> None:
    story, [_, lost] = told(ann, ("chart.png", b"<script>alert(1)</script>"), ("lost.png", png(2, 2)))
    Path(lost.content.path).unlink()
    html = page(client, story)
    assert "/image/" not in html
    assert html.count("data-show") == 2


def test_files_of_a_message_open_their_pages(client: Client, ann: User) -> None:
    story = Story(ann)
    photo = filed(story.conversation, "photo.png", png(), prompt=story.prompt)
    table = filed(story.conversation, "a.csv", b"a,b\n", prompt=story.prompt)
    html = page(client, story)
    assert f'<a class="chip" href="/files/{photo.pk}/view/"' in html
    assert f'<img class="thumb" src="/files/{photo.pk}/image/" alt="" loading="lazy">' in html
    assert f'<a class="chip" href="/files/{table.pk}/view/"' in html
    assert html.count('class="thumb"') == 1
