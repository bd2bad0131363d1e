"""The addresses of diagrams: for whoever may read the text in which they stand, and for nothing that stands nowhere."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from html import unescape
from threading import Event

import pytest
from django.test import Client

from conversations.database import erasable_cache
from conversations.database.erasable_cache import empty_if_removed
from conversations.display.rendering.diagrams import digest, kind_of
from conversations.display.rendering.markdown import render
from conversations.display.rendering.place import Place
from conversations.display.rendering.sources import diagrams_in, find_source
from conversations.erasure.steps import redact
from conversations.models import Draft, File, Step
from conversations.pages.chat import diagrams
from conversations.pages.files.previews import TEXT_BYTES
from conversations.pictures.children import Children
from conversations.pictures.drawing import Pictures
from conversations.pictures.theme import Theme
from tests.agentsite.processes import wait_for
from tests.conversations.pages.files.filing import filed
from tests.conversations.pictures.corpus import ENDLESS, KINDS
from tests.conversations.support import Story, person, says

pytestmark = pytest.mark.django_db

SOURCE = "flowchart LR\n  A[One] --> B[Two]\n"
BROKEN = "flowchart LR\n  A[One --> B\n"
NESTED = """So:

- a list

  ```mermaid
  pie
    "a" : 1
  ```

> ~~~ mermaid title
> timeline
>   2002 : x
> ~~~
"""


def fence(source: str) -> str:
    return f"```mermaid\n{source}```\n"


def address(story: Story, source: str = SOURCE, theme: str = "light") -> str:
    return f"/prompts/{story.prompt.pk}/diagrams/{digest(source)}.svg?theme={theme}"


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pictures]:
    """The site's pictures, drawn by children of this test's own."""
    children = Children(count=1, seconds=2, waiting_most=1)
    pictures = Pictures(children)
    monkeypatch.setattr(diagrams, "pictures", pictures)
    yield pictures
    children.close()


@pytest.fixture
def story(client: Client, pictures: Pictures) -> Story:
    """A turn that has drawn."""
    owner = person("anna", first_name="Anna")
    client.force_login(owner)
    story = Story(owner, "Draw it.")
    story.asks_model()
    story.answers(says(f"Here:\n\n{fence(SOURCE)}\n{fence(BROKEN)}\n{fence(ENDLESS + chr(10))}\n{NESTED}"))
    story.ends()
    return story


def test_a_picture(client: Client, story: Story) -> None:
    """Shown as an image, in which nothing runs; opened by itself, it is sandboxed."""
    for theme in ("light", "dark"):
        answer = client.get(address(story, theme=theme))
        assert answer.status_code == 200
        assert answer["Content-Type"] == "image/svg+xml"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'; style-src 'unsafe-inline'"
        assert answer["Cache-Control"] == "private, no-cache"
        assert ">One<" in answer.text
    head = client.head(address(story))
    assert (head.status_code, head.content) == (200, b"")
    again = client.get(address(story), headers={"If-None-Match": client.get(address(story))["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_every_address_on_the_page_has_its_picture(client: Client, story: Story) -> None:
    """Also of fences within lists and quotes: the page and the address name a diagram by the same text."""
    page = client.get(story.conversation.get_absolute_url()).text
    addresses = {unescape(src) for src in re.findall(r'src="(/prompts/[^"]*)"', page)}
    assert len(addresses) == 2 * 5
    assert {client.get(each).status_code for each in addresses} == {200, 422}
    assert page.count('<details><summary>Source</summary><pre tabindex="0"><code>') == 5


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("no diagram", []),
        ("mermaid", []),
        ("```py\nmermaid\n```", []),
        ("    ```mermaid\n    pie\n    ```", []),
        ("```mermaid\npie\n```\n\n```MERMAID\npie\n```", ["pie\n"]),
        ("``` mermaid\npie", ["pie"]),
        ("```mermaid\npie\u202e\n```", ["pie[U+202E]\n"]),
        (NESTED, ['pie\n  "a" : 1\n', "timeline\n  2002 : x\n"]),
        ("```mermaid\npie\n```\n" + "| a | b |\n|---|---|\n" + "| c | d |\n" * 4_000, ["pie\n"]),
    ],
)
def test_which_fences_are_diagrams(text: str, sources: list[str]) -> None:
    """Exactly those that the page shows as such."""
    found = diagrams_in(text)
    assert found == sources
    shown = render(text, Place("5", "/prompts/5/diagrams/", ""))
    assert set(re.findall(r"/prompts/5/diagrams/(\w+)\.svg", shown)) == set(map(digest, found))


def test_a_draft_has_its_pictures_before_it_is_recorded(client: Client, pictures: Pictures) -> None:
    """At the address that they keep."""
    owner = person("anna")
    client.force_login(owner)
    story = Story(owner, "Draw it.")
    story.asks_model()
    draft = {"conversation": story.conversation, "prompt": story.prompt, "path": "1", "attempt": 1, "fence": 1}
    text = f"Here:\n\n{fence(SOURCE)}\nand"
    Draft.objects.create(**draft, text=text, size=len(text))
    streaming = client.get(address(story))
    assert streaming.status_code == 200
    Draft.objects.all().delete()
    assert client.get(address(story)).status_code == 404
    story.answers(says(text))
    assert client.get(address(story)).content == streaming.content


def test_nobody_else_gets_it(client: Client, story: Story) -> None:
    assert client.get(address(story)).status_code == 200
    for other in (person("bob"), person("kim", "decide_approval", is_staff=True)):
        client.force_login(other)
        assert client.get(address(story)).status_code == 404
    client.logout()
    assert client.get(address(story))["Location"].startswith("/login/")
    assert client.post(address(story)).status_code in (302, 403, 405)


def test_only_what_stands_there_is_drawn(client: Client, story: Story) -> None:
    """Nobody can have the site draw a source of their own."""
    other = Story(story.conversation.owner, "Draw another.", story.conversation)
    assert client.get(address(other)).status_code == 404
    assert client.get(address(story, "pie\n")).status_code == 404
    assert client.get(f"/prompts/{story.prompt.pk}/diagrams/x.svg?theme=light").status_code == 404


def test_what_was_redacted_is_not_drawn(client: Client, story: Story, pictures: Pictures) -> None:
    """Not even from memory, which is emptied."""
    assert client.get(address(story)).status_code == 200
    assert pictures.cache.size > 0
    seq = Step.objects.get(prompt=story.prompt, type="text").seq
    redact(story.conversation, [seq], story.conversation.owner, "A name.")
    assert client.get(address(story)).status_code == 404
    empty_if_removed()
    assert pictures.cache.size == 0


@pytest.mark.django_db(transaction=True)
def test_a_process_that_is_asked_nothing_forgets_what_another_has_redacted(
    client: Client, story: Story, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasable_cache, "LOOK_SECONDS", 0.02)
    assert client.get(address(story)).status_code == 200
    over = Event()
    looking = erasable_cache.keep_looking(over)
    seq = Step.objects.get(prompt=story.prompt, type="text").seq
    redact(story.conversation, [seq], story.conversation.owner, "A name.")
    wait_for(lambda: not pictures.cache.size)
    over.set()
    looking.join()


def test_an_unknown_theme(client: Client, story: Story) -> None:
    answer = client.get(address(story, theme="neon"))
    assert (answer.status_code, answer.text) == (400, "The theme is one of: light, dark.")


def test_why_there_is_no_picture(client: Client, story: Story) -> None:
    """In words, as text: the page shows them below the source."""
    broken, endless = client.get(address(story, BROKEN)), client.get(address(story, ENDLESS))
    assert (broken.status_code, broken.text) == (422, "Unterminated node label (missing `]`).")
    assert (endless.status_code, endless.text) == (422, "Drawing took longer than 2 seconds.")
    assert {broken["Content-Type"], endless["Content-Type"]} == {"text/plain; charset=utf-8"}
    assert {broken["Cache-Control"], endless["Cache-Control"]} == {"no-store"}


def test_a_busy_site(client: Client, story: Story, pictures: Pictures) -> None:
    """It says when to ask again."""
    waiting = [pictures._children.draw(ENDLESS, "light")]
    wait_for(waiting[0].running)
    waiting.append(pictures._children.draw(SOURCE, "dark"))
    answer = client.get(address(story))
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    wait_for(lambda: all(each.done() for each in waiting))
    assert client.get(address(story)).status_code == 200


def test_each_picture_is_drawn_once(
    client: Client, story: Story, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors, too; those of a slow machine for a minute. Two who ask at once wait for the same drawing."""
    asked: list[str] = []
    draw = pictures._children.draw

    def counted(source: str, theme: Theme) -> Future[str]:
        asked.append(source)
        return draw(source, theme)

    monkeypatch.setattr(pictures._children, "draw", counted)
    for source in (SOURCE, BROKEN, ENDLESS):
        assert client.get(address(story, source)).content == client.get(address(story, source)).content
    assert [each.rstrip("\n") for each in asked] == [each.rstrip("\n") for each in (SOURCE, BROKEN, ENDLESS)]
    with ThreadPoolExecutor(8) as threads:
        came = list(threads.map(lambda _: pictures.of(KINDS["pie"], "dark", 0), range(8)))
    assert len(asked) == 4
    assert len({picture.svg for picture in came}) == 1


WORDS = "flowchart LR\n  A[\u00dcber] --> B[Caf\u00e9]\n"
MARKDOWN = fence(WORDS).encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plan.md", MARKDOWN),
        ("PLAN.Markdown", MARKDOWN),
        ("plan", MARKDOWN),  # by its media type
        ("old.md", fence(WORDS).encode("cp1252")),
        ("windows.md", fence(WORDS).encode("utf-16")),
        ("long.md", MARKDOWN + b"\nand so on" * 200_000),
    ],
    ids=["md", "Markdown", "media-type", "cp1252", "utf-16", "long"],
)
def test_diagrams_of_a_file(client: Client, story: Story, name: str, content: bytes) -> None:
    """Of every Markdown file, whose page shows where each picture is; for the owner of its conversation."""
    file = filed(story.conversation, name, content, "text/markdown")
    page = client.get(f"/files/{file.pk}/view/").text
    addresses = re.findall(r'src="(/files/\d+/diagrams/[^"]*)"', page)
    assert len(addresses) == 2
    assert page.count('id="diagram-acts"') == page.count('id="diagram-zoom"') == 1  # its buttons
    assert [client.get(each).status_code for each in addresses] == [200, 200]
    client.force_login(person("bob"))
    assert {client.get(each).status_code for each in addresses} == {404}


def test_a_file_that_is_no_markdown_or_is_gone_has_no_diagrams(client: Client, story: Story) -> None:
    """Also where an erasure has left a row that names no content."""
    text, gone = (filed(story.conversation, name, MARKDOWN) for name in ("plan.txt", "plan.md"))
    at = {file: f"/files/{file.pk}/diagrams/{digest(WORDS)}.svg" for file in (text, gone)}
    assert [client.get(each).status_code for each in at.values()] == [404, 200]
    gone.content.storage.delete(str(gone.content.name))
    assert client.get(at[gone]).status_code == 404
    File.objects.filter(pk=gone.pk).update(content="")
    assert client.get(at[gone]).status_code == 404


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("NOTES", fence(SOURCE).encode()),
        ("old.md", fence("graph TD\n  A[Caf\u00e9]\n").encode("cp1252")),
        ("wide.md", fence(SOURCE).encode("utf-16")),
        ("long.md", fence(SOURCE).encode() + b"word\n" * TEXT_BYTES + fence(BROKEN).encode()),
    ],
)
def test_a_file_s_pictures_are_those_of_its_preview(client: Client, story: Story, name: str, content: bytes) -> None:
    """Whatever its encoding, its name and its length; what the preview leaves out is not searched."""
    file = filed(story.conversation, name, content, "text/markdown")
    shown = re.findall(r'src="(/files/[^"]*light)"', client.get(f"/files/{file.pk}/view/").text)
    assert len(shown) == 1
    assert client.get(unescape(shown[0])).status_code == 200
    assert client.get(f"/files/{file.pk}/diagrams/{digest(BROKEN)}.svg").status_code == 404


def test_a_text_of_nothing_but_diagrams_is_read_once() -> None:
    """Each of its pictures would have it read again."""
    text = "".join(fence(f"{number}\n") for number in range(200_000 // 20))
    assert find_source(digest("1"), [text], 0)
    began = time.thread_time()
    for _ in range(100):
        assert find_source(digest("9999"), [text], 0)
    assert time.thread_time() - began < 1  # seconds of CPU: it would be ten


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("graph TD\n A", "Flowchart"),
        ("\n\n%% a comment\nsequenceDiagram\n", "Sequence diagram"),
        ("---\ntitle: x\n---\nstateDiagram-v2\n", "State diagram"),
        ('%%{init: {"a": 1}}%%\nC4Container\n', "C4 diagram"),
        ("xychart-beta\n", "Chart"),
        ("<b>\n", "Diagram"),
        ("", "Diagram"),
    ],
)
def test_the_kind_in_words(source: str, kind: str) -> None:
    assert kind_of(source) == kind


def test_the_kind_is_found_in_time() -> None:
    """Nothing that may stand before it takes time that grows with the square of its length."""
    began = time.thread_time()
    for unit in ("%%{\n", "---\n", "---\na\n", "%%{a}%%\n", "%%\n", "\n"):
        assert kind_of(unit * (200_000 // len(unit))) == "Diagram"
    assert time.thread_time() - began < 1  # seconds of CPU: it would be a minute


def test_every_kind_that_is_drawn_has_a_name() -> None:
    assert "Diagram" not in {kind_of(source) for source in KINDS.values()}
