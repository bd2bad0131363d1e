"""The page of a file, and what is shown on it: never more than a part, and never an error for what is in it."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest
from django.test import Client

from conversations.models import Conversation, File
from tests.conversations.pages.files.filing import GIF, SVG, filed, pdf, png
from tests.conversations.support import person

FETCHED = {"HX-Request": "true"}
BINARY = "This kind of file cannot be shown here. Download it to open it in another program."


def preview(client: Client, file: File) -> str:
    """The preview of a file, as a page of a conversation fetches it."""
    answer = client.get(f"/files/{file.pk}/view/", headers=FETCHED)
    assert answer.status_code == 200
    return answer.text


def large(file: File, begin: bytes, size: int) -> File:
    """This file with a content of a size, which takes no room on the disk."""
    with Path(file.content.path).open("r+b") as stream:
        stream.write(begin)
        stream.truncate(size)
    file.size = size
    file.save()
    return file


def test_a_page_names_the_file_leads_back_and_offers_the_download(client: Client, conversation: Conversation) -> None:
    file = filed(conversation, "notes.txt", b"Buy milk.")
    page = client.get(f"/files/{file.pk}/view/")
    for part in ("<h1", "notes.txt</h1>", f'href="/c/{conversation.pk}/"', f'href="/files/{file.pk}/"', "Buy milk."):
        assert part in page.text
    assert "frame-src 'self'" in page["Content-Security-Policy"]
    assert "script-src 'self';" in page["Content-Security-Policy"]


def test_a_preview_alone_is_fetched_from_the_same_address(client: Client, conversation: Conversation) -> None:
    file = filed(conversation, "notes.txt", b"Buy milk.")
    part, page = client.get(f"/files/{file.pk}/view/", headers=FETCHED), client.get(f"/files/{file.pk}/view/")
    assert part.text.lstrip().startswith('<div class="preview text">')
    assert "<html" not in part.text
    for answer in (part, page):
        assert "HX-Request" in answer["Vary"]  # a browser must not go back to the one for the other


def test_diagrams_can_be_enlarged_and_saved_on_the_page_of_a_file(client: Client, conversation: Conversation) -> None:
    file = filed(conversation, "plan.md", b"```mermaid\nflowchart LR\n  A --> B\n```\n", "text/markdown")
    page = client.get(f"/files/{file.pk}/view/").text
    for part in ('class="diagram"', '<template id="diagram-acts">', '<template id="diagram-zoom">'):
        assert part in page


def test_no_page_but_those_with_previews_may_have_frames(client: Client, conversation: Conversation) -> None:
    for address in ("/", "/new/", "/account/", "/workflows/"):
        assert "frame-src" not in client.get(address)["Content-Security-Policy"]
    assert "frame-src 'self'" in client.get(f"/c/{conversation.pk}/")["Content-Security-Policy"]


@pytest.mark.parametrize("what", ["view", "frame", "image"])
def test_nobody_else_finds_it(client: Client, conversation: Conversation, what: str) -> None:
    file = filed(conversation, "chart.png", png())
    for other in (person("bob"), person("chief", is_superuser=True, is_staff=True)):
        client.force_login(other)
        assert client.get(f"/files/{file.pk}/{what}/").status_code == 404
        assert client.get(f"/c/{conversation.pk}/images/chart.png").status_code == 404
    client.logout()
    assert client.get(f"/files/{file.pk}/{what}/")["Location"].startswith("/login/")
    assert client.get(f"/c/{conversation.pk}/images/chart.png")["Location"].startswith("/login/")


def test_a_table(client: Client, conversation: Conversation) -> None:
    html = preview(client, filed(conversation, "a.csv", b"Name,Units\n=1+1,<b>\nSouth,480\n", "text/csv"))
    assert '<th scope="col" class="whole">Name</th>' in html
    assert '<td class="whole">=1+1</td>' in html
    assert "&lt;b&gt;" in html


def test_a_table_that_is_none_is_shown_as_text(client: Client, conversation: Conversation) -> None:
    html = preview(client, filed(conversation, "a.csv", b"x" * 150_000))
    assert "It cannot be read as a table." in html
    assert '<pre tabindex="0" class="wraps">' in html


def test_markdown_is_rendered_as_answers_are(client: Client, conversation: Conversation) -> None:
    text = b"# Q3\n\n<script>alert(1)</script> ![x](https://evil.example/x.png) [y](javascript:alert(1))"
    html = preview(client, filed(conversation, "q3.md", text))
    assert "Q3</h1>" in html
    for hostile in ("<script", "<img", 'href="javascript'):
        assert hostile not in html


def test_text_is_escaped_and_shows_what_turns_it_around(client: Client, conversation: Conversation) -> None:
    html = preview(client, filed(conversation, "a.py", "x = '<b>' # \u202e".encode()))
    assert "&lt;b&gt;" in html
    assert "[U+202E]" in html
    assert "\u202e" not in html


@pytest.mark.parametrize(
    ("content", "shown", "said"),
    [
        ("Grüße".encode(), "Grüße", ""),
        ("\ufeffGrüße".encode(), "Grüße", ""),
        ("Grüße".encode("utf-16"), "Grüße", ""),
        ("Grüße".encode("cp1252"), "Grüße", "It is not UTF-8 and was read as Windows-1252."),
        (b"\xff\xfe\x00", "\ufffd", ""),
        (b"a\x81b\xe9", "a\ufffdb\xe9", "It is not UTF-8 and was read as Windows-1252."),
    ],
)
def test_text_in_other_encodings(
    client: Client, conversation: Conversation, content: bytes, shown: str, said: str
) -> None:
    html = preview(client, filed(conversation, "old.txt", content))
    assert f"<code>{shown}</code>" in html
    assert said in html
    assert said or "UTF-8" not in html


def test_a_long_text_ends_with_a_whole_line(client: Client, conversation: Conversation) -> None:
    html = preview(client, filed(conversation, "server.log", "Zeile für Zeile\n".encode() * 30_000))
    assert "Only the first 200.0\xa0KB are shown." in html
    assert html.count("Zeile für Zeile\n") == 204_800 // 17
    assert "UTF-8" not in html


@pytest.mark.parametrize("offset", range(4))
def test_a_text_that_is_cut_within_a_character_is_still_utf_8(
    client: Client, conversation: Conversation, offset: int
) -> None:
    html = preview(client, filed(conversation, "one-line.txt", b"x" * offset + "😀".encode() * 60_000))
    assert html.count("😀") in (51_198, 51_199)
    assert "\ufffd" not in html
    assert "UTF-8" not in html


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("a.txt", b"x" * 300_000),
        ("a.md", b"words " * 60_000),
        ("a.csv", (b"x" * 120 + b",1\n") * 20_000),
        ("a.html", b"<p>" * 300_000),
        ("a.png", png()),
        ("a.pdf", pdf()),
        ("a.bin", b"\x01\xff"),
    ],
)
def test_a_file_of_any_size_is_read_only_as_far_as_it_is_shown(
    client: Client, conversation: Conversation, name: str, begin: bytes
) -> None:
    file = large(filed(conversation, name, b"x"), begin, 2**30)
    preview(client, filed(conversation, name, begin[:1_000]))  # imports and templates are no part of what is measured
    tracemalloc.start()
    try:
        html = preview(client, file)
        if name == "a.html":
            assert client.get(f"/files/{file.pk}/frame/").status_code == 404
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 2**20
    assert len(html) < 2**20


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "This file is empty."),
        (b"PK\x03\x04\0\0", BINARY),
        (b"text" * 20_000 + b"\0", BINARY),
    ],
)
def test_what_cannot_be_shown_says_why(client: Client, conversation: Conversation, content: bytes, why: str) -> None:
    file = filed(conversation, "notes.md", content)
    assert why in preview(client, file)
    assert f'href="/files/{file.pk}/"' in client.get(f"/files/{file.pk}/view/").text


@pytest.mark.parametrize("name", ["a.png", "a.md", "a.html", "a.csv", "a.pdf"])
def test_a_file_whose_content_is_gone_says_so(client: Client, conversation: Conversation, name: str) -> None:
    file = filed(conversation, name, b"x")
    Path(file.content.path).unlink()
    page = client.get(f"/files/{file.pk}/view/")
    assert "The content of this file is no longer here." in page.text
    assert f'href="/files/{file.pk}/"' not in page.text
    for what in ("frame", "image"):
        assert client.get(f"/files/{file.pk}/{what}/").status_code == 404


def test_a_file_that_the_site_may_not_read_is_no_error(
    client: Client, conversation: Conversation, plain_rights: None
) -> None:
    file = filed(conversation, "a.txt", b"x")
    Path(file.content.path).chmod(0)
    assert "no longer here" in preview(client, file)


@pytest.mark.parametrize(
    ("content", "size"),
    [(png(8, 8)[:16] + b"\0\0\x40\0\0\0\x40\0", "16,384 × 16,384 pixels"), (SVG + b" " * 10_000_000, "9.5\xa0MB")],  # noqa: RUF001
)
def test_an_image_that_would_fill_the_memory_of_a_browser_is_not_shown(
    client: Client, conversation: Conversation, content: bytes, size: str
) -> None:
    file = filed(conversation, "a.svg", content)
    assert f"This file is too large to be shown here ({size})." in preview(client, file)
    assert client.get(f"/files/{file.pk}/image/").status_code == 404


@pytest.mark.parametrize(
    "name", ["a\"b'c.md", "<img src=x onerror=alert(1)>.md", "\u202efdp.md", "a&amp;b.md", "{{ x }}.md"]
)
def test_hostile_names_are_text(client: Client, conversation: Conversation, name: str) -> None:
    for content in (b"# x", GIF, pdf()):
        file = filed(conversation, name, content)
        page = client.get(f"/files/{file.pk}/view/").text
        assert "<img src=x" not in page
        assert "\u202e" not in page
        image = client.get(f"/files/{file.pk}/image/")
        assert image.status_code == (200 if content == GIF else 404)
        if content == GIF:
            assert b"".join(image) == GIF
            assert "\n" not in image["Content-Disposition"]


def test_a_markdown_bomb(client: Client, conversation: Conversation) -> None:
    before = time.process_time()
    for bomb in (b"[" * 200_000, b"> " * 100_000, b"|a" * 100_000 + b"\n" + b"|-" * 100_000):
        assert len(preview(client, filed(conversation, "bomb.md", bomb))) < 20_000_000
    assert time.process_time() - before < 20
