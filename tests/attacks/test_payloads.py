"""The corpus of payloads as HTML: nothing in it is anything but an element that the site makes itself (T-50)."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from conversations.display.rendering import sanitising
from conversations.display.rendering.markdown import render
from conversations.display.rendering.place import Place
from conversations.pages.timeline.growing import GrowingText
from tests.attacks.payloads import PAYLOADS

ELSEWHERE = "http://127.0.0.2:9"
PLACE = Place("5", "/prompts/5/diagrams/", "/c/3/images/")
SCHEME = re.compile(r"[\x00-\x20]*([a-z][a-z0-9+.\t\r\n-]*):", re.IGNORECASE)
"""How an address begins that is not relative, as browsers read it."""


class _Harmless(HTMLParser):
    """Reads HTML as a browser does, and keeps what is not harmless."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in sanitising.TAGS:
            self.found.append(tag)
        for name, value in attrs:
            harmless = {
                "src": sanitising.PICTURES.fullmatch(value or "") is not None,
                "id": sanitising.IDS.fullmatch(value or "") is not None,
                "href": not (scheme := SCHEME.match(value or "")) or scheme[1].lower() in sanitising.SCHEMES,
                "class": set((value or "").split()) <= sanitising.CLASSES.get(tag, set()),
            }
            if not harmless.get(name, name in sanitising.ATTRIBUTES.get(tag, set())):
                self.found.append(f"{tag} {name}={value}")


def test_there_are_enough() -> None:
    assert len(set(PAYLOADS)) >= 100


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_is_harmless(payload: str) -> None:
    """Whole, without a place, and while it streams."""
    text = payload.replace("HOSTILE", ELSEWHERE)
    assert not _Harmless(render(text, PLACE)).found
    assert not _Harmless(render(text)).found
    growing = GrowingText(PLACE)
    for end in range(1, len(text) + 1):
        growing.grow(text[:end])
        assert not _Harmless("".join(piece.html for piece in growing.pieces)).found
