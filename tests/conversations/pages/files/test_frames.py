"""What previews load: frames and images. Whatever is in a file, it runs no script and asks no other site."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from conversations.models import Conversation, File
from tests.conversations.pages.files.filing import GIF, SVG, filed, pdf, png

IMAGE_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
HTML_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
PAGE = b"<!doctype html><title>Report</title><style>p{color:red}</style><p>Hello</p>"
CONNECTING = [
    '<link rel="preconnect" href="https://evil.example/">',
    '<LINK rel=dns-prefetch href="//evil.example">',
    '<head><Link\nrel="preconnect"\thref="https://evil.example/">',
    '<link/rel="preconnect"/href="https://evil.example/">',
    '<svg><link rel="preconnect" href="https://evil.example/"></svg>',
    '<link<link rel="preconnect" href="https://evil.example/">',
    '<iframe src="https://evil.example/"></iframe>',
    "<IFrame\nsrc=//evil.example></IFRAME>",
    '<svg><foreignObject><iframe/src="https://evil.example/"></iframe></foreignObject></svg>',
    '<frame src="https://evil.example/">',
]


class Elements(HTMLParser):
    """The names of the elements of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)


def sent(client: Client, address: str, **headers: str) -> tuple[Any, bytes]:
    """An answer, and its whole content."""
    answer: Any = client.get(address, headers=headers)
    return answer, b"".join(answer) if answer.streaming else answer.content


def test_html_may_do_nothing_in_its_frame(client: Client, conversation: Conversation) -> None:
    file = filed(conversation, "page.html", PAGE)
    preview = client.get(f"/files/{file.pk}/view/").text
    assert f'<iframe sandbox src="/files/{file.pk}/frame/" title="page.html"></iframe>' in preview
    assert "Scripts and remote content are off." in preview
    answer, content = sent(client, f"/files/{file.pk}/frame/")
    assert answer["Content-Security-Policy"] == HTML_POLICY
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Frame-Options"] == "SAMEORIGIN"
    assert answer["X-DNS-Prefetch-Control"] == "off"
    assert answer["Content-Type"] == "text/html; charset=utf-8"
    assert content == PAGE


@pytest.mark.parametrize("element", CONNECTING)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_html_makes_no_connection_that_policies_do_not_know_of(
    client: Client, conversation: Conversation, element: str, encoding: str
) -> None:
    """A browser connects for these before it asks the policy, and the name of a host can carry what was read."""
    html = f"<p>Grüße</p>{element}<b>after</b>"
    _, content = sent(client, f"/files/{filed(conversation, 'page.html', html.encode(encoding)).pk}/frame/")
    connecting = re.compile(r"link|i?frame\Z")
    assert any(map(connecting.match, Elements(html).names))
    assert not any(map(connecting.match, Elements(content.decode()).names))
    assert "Grüße" in content.decode()
    assert "<b>after</b>" in content.decode()


def test_a_pdf_is_for_the_viewer_of_the_browser(client: Client, conversation: Conversation) -> None:
    file = filed(conversation, "report.pdf", pdf())
    preview = client.get(f"/files/{file.pk}/view/").text
    assert f'src="/files/{file.pk}/frame/#navpanes=0"' in preview
    assert f'href="/files/{file.pk}/frame/"' in preview  # where a browser has no viewer
    answer, content = sent(client, f"/files/{file.pk}/frame/")
    assert content == pdf()
    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("application/pdf", "nosniff")
    assert answer["Content-Disposition"] == 'inline; filename="report.pdf"'
    assert answer["Content-Security-Policy"].startswith("default-src 'none';")
    assert "frame-ancestors 'self'" in answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "SAMEORIGIN"


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.txt", PAGE), ("a.svg", SVG), ("a.png", png()), ("a.md", b"# x"), ("a.html", GIF + PAGE), ("a.html", b"")],
)
def test_nothing_else_has_a_frame(client: Client, conversation: Conversation, name: str, content: bytes) -> None:
    assert client.get(f"/files/{filed(conversation, name, content, 'text/html').pk}/frame/").status_code == 404


@pytest.mark.parametrize(
    ("name", "content", "media_type"),
    [
        ("chart.png", png(), "image/png"),
        ("claims.html", png(), "image/png"),
        ("polyglot.html", GIF + PAGE, "image/gif"),
        ("logo.svg", SVG.replace(b"<rect", b"<script>alert(1)</script><rect"), "image/svg+xml"),
    ],
)
def test_an_image_is_sent_as_what_it_is(
    client: Client, conversation: Conversation, name: str, content: bytes, media_type: str
) -> None:
    answer, got = sent(client, f"/files/{filed(conversation, name, content, 'text/html').pk}/image/")
    assert got == content
    assert answer["Content-Type"] == media_type
    assert answer["Content-Security-Policy"] == IMAGE_POLICY
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"].startswith("inline")


@pytest.mark.parametrize(("name", "content"), [("a.png", PAGE), ("a.svg", PAGE), ("a.html", SVG), ("a.pdf", pdf())])
def test_what_is_no_image_is_not_sent_as_one(
    client: Client, conversation: Conversation, name: str, content: bytes
) -> None:
    assert client.get(f"/files/{filed(conversation, name, content, 'image/png').pk}/image/").status_code == 404


def test_a_browser_that_has_an_image_is_not_sent_it_again(client: Client, conversation: Conversation) -> None:
    file = filed(conversation, "chart.png", png())
    first, _ = sent(client, f"/files/{file.pk}/image/")
    assert first["Cache-Control"] == "private, no-cache"
    again, content = sent(client, f"/files/{file.pk}/image/", **{"If-None-Match": first["ETag"]})
    assert (again.status_code, content) == (304, b"")
    assert again["Content-Security-Policy"] == IMAGE_POLICY  # it takes the place of the one that was kept


def named(client: Client, conversation: Conversation, path: str) -> bytes | None:
    """The content of the image that answers of this conversation can show under this name."""
    answer, content = sent(client, f"/c/{conversation.pk}/images/{path}")
    if answer.status_code == 404:
        return None
    assert answer["Content-Security-Policy"] == IMAGE_POLICY
    return content


def test_an_answer_shows_the_newest_image_of_a_name(client: Client, conversation: Conversation) -> None:
    filed(conversation, "chart.png", png(1))
    filed(conversation, "chart.png", png(2))
    filed(conversation, "chart.png", b"no image")
    assert named(client, conversation, "chart.png") == png(2)
    assert named(client, conversation, "./././chart.png") == png(2)


def test_an_image_that_was_given_has_the_path_of_its_copy_in_the_workspace(
    client: Client, conversation: Conversation
) -> None:
    filed(conversation, "photo.png", png(1), path="photo-2.png")
    filed(conversation, "a 100 % \"b\" 'c' é.png", png(3))
    assert named(client, conversation, "photo-2.png") == png(1)
    assert named(client, conversation, "a%20100%20%25%20%22b%22%20%27c%27%20%C3%A9.png") == png(3)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "none.png",
        "../chart.png",
        "..%2fchart.png",
        "/chart.png",
        "%00",
        "chart.png%00",
        "%ff",
        "a%0Ab",
        "x" * 5_000,
    ],
)
def test_no_other_name_leads_anywhere(client: Client, conversation: Conversation, path: str) -> None:
    filed(conversation, "chart.png", png())
    assert client.get(f"/c/{conversation.pk}/images/{path}").status_code == 404


def test_the_images_of_another_conversation_are_not_shown(client: Client, conversation: Conversation) -> None:
    other = Conversation.objects.create(owner=conversation.owner)
    filed(other, "chart.png", png())
    assert named(client, conversation, "chart.png") is None
    assert client.get(f"/c/{other.pk + 1}/images/chart.png").status_code == 404


def test_an_image_that_is_lost_and_put_back_is_shown_again(client: Client, conversation: Conversation) -> None:
    """What is remembered of images does not say for ever that one is gone."""
    file = filed(conversation, "chart.png", png())
    content = Path(file.content.path)
    aside = content.rename(content.with_suffix(".aside"))
    assert client.get(f"/files/{file.pk}/image/").status_code == 404
    aside.rename(content)
    assert sent(client, f"/files/{file.pk}/image/")[1] == png()
    content.unlink()
    assert client.get(f"/files/{file.pk}/image/").status_code == 404


def test_a_row_without_content_is_not_found(client: Client, conversation: Conversation) -> None:
    file = File.objects.create(conversation=conversation, name="a.png", media_type="image/png", size=1, sha256="")
    for what in ("frame", "image"):
        assert client.get(f"/files/{file.pk}/{what}/").status_code == 404
    assert "no longer here" in client.get(f"/files/{file.pk}/view/").text
