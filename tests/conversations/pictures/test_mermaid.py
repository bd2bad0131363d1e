"""What is drawn (T-50): every kind in both themes, in the site's look, and nothing that reaches out of the picture."""

from __future__ import annotations

import re
from importlib.metadata import version
from xml.etree import ElementTree as ET

import pytest

from conversations.pictures import mermaid
from conversations.pictures.mermaid import SOURCE_MOST, NotDrawn, draw
from conversations.pictures.styles import contrast
from conversations.pictures.svg import Unsafe, checked
from conversations.pictures.theme import THEMES, Theme, colours
from tests.conversations.pictures.corpus import EVIL, INTRUDERS, KINDS, STYLED

SVG = "{http://www.w3.org/2000/svg}"
PLAIN = "flowchart LR\n A-->B"
DRAWN = f'<svg xmlns="{SVG[1:-1]}" viewBox="0 0 10 10">%s</svg>'


def words_of(picture: str) -> str:
    """Return all text that is drawn."""
    texts = ET.fromstring(picture).iter(f"{SVG}text")
    return " ".join("".join(text.itertext()) for text in texts)


def test_what_draws_is_on_record() -> None:
    """T-50. Another version is looked at before it is used: at its pictures, and at what it lets through."""
    assert mermaid.VERSION == "mmdr 0.4.0 merman 1"
    assert version("mmdr") == "0.4.0"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn(kind: str, theme: Theme) -> None:
    """With its own size, without which an image is 0 pixels wide, on the background of its theme."""
    picture = draw(KINDS[kind], theme)
    root = ET.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    assert 10 < float(root.attrib["width"]) < 2000
    assert 10 < float(root.attrib["height"]) < 2000
    assert "style" not in root.attrib
    assert f"background:{colours(theme)['bg']}" in picture
    assert len(words_of(picture)) > 10


def test_the_themes_differ() -> None:
    assert draw(PLAIN, "light") != draw(PLAIN, "dark")


@pytest.mark.parametrize("name", INTRUDERS)
def test_nothing_reaches_out_of_the_picture(name: str) -> None:
    """Whether it is drawn without that or refused. T-50."""
    try:
        picture = draw(INTRUDERS[name], "light")
    except NotDrawn:
        return
    for element in ET.fromstring(picture).iter():
        tag = element.tag.removeprefix(SVG)
        assert tag.lower() not in ("script", "foreignobject", "iframe", "animate", "set", "handler")
        for attribute, value in element.items():
            assert not attribute.lower().startswith("on")
            assert "href" not in attribute or value.startswith("#")
            assert "javascript:" not in value
            assert not re.search(r"url\((?!#)", value)
        if tag == "style":
            assert not re.search(r"url\((?!#)|@import|\\\\", element.text or "")
    assert EVIL not in re.sub(r"<(text|tspan|title|desc)[ >].*?</\1>", "", picture)
    assert "forest" not in picture


@pytest.mark.parametrize("name", ["settings", "nested settings", "front matter"])
def test_settings_of_the_author_change_nothing(name: str) -> None:
    """The picture is the same as without them."""
    titled = "---\ntitle: Mine\n---\n" if name == "front matter" else ""
    assert draw(INTRUDERS[name], "dark") == draw(titled + PLAIN, "dark")


def test_the_title_of_the_front_matter_is_drawn() -> None:
    assert "Mine" in words_of(draw(INTRUDERS["front matter"], "light"))
    assert 'a: "b' in words_of(draw("---\ntitle: 'a: \"b'\n---\n" + PLAIN, "light"))


@pytest.mark.parametrize("theme", THEMES)
def test_text_on_colours_of_the_author_can_be_read(theme: Theme) -> None:
    """It is dark on light colours and light on dark ones, whatever the theme and the author say."""
    picture = draw(STYLED, theme)
    pairs = re.findall(r'style="[^"]*fill:(#\w{6})[^"]*"[^>]*/><g class="label" style="color:(#\w{6})', picture)
    assert {fill for fill, _ in pairs} == {"#99ff99", "#ffc0cb", "#223344"}
    assert all(contrast(fill, text) > 7 for fill, text in pairs)
    assert "[style*='color:'] text" in picture, "texts do not take the colour of their label"


def test_the_longest_source() -> None:
    with pytest.raises(NotDrawn, match="longer than 20 kB"):
        draw(PLAIN + "\n%%" + "\u00e9" * (SOURCE_MOST // 2), "light")
    draw(PLAIN + "\n%% " + "x" * (SOURCE_MOST - len(PLAIN) - 4), "light")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "The source does not begin with a kind of diagram that can be drawn."),
        ("flowchart LR\n A[", "Unterminated node label (missing `]`)."),
        ("flowchart LR\n A-->B\n }", "Line 3: Unexpected character."),
        ("%%{init: {\n}}%%\nflowchart LR\n A-->B\n }", "Line 5: Unexpected character."),
        ("---\ntitle: x\nconfig:\n  look: neo\n---\nflowchart LR\n }", "Line 7: Unexpected character."),
        ("gantt\n dateFormat YYYY\n section A\n X : 2026-99-99, 5x", "Invalid date:2026-99-99."),
    ],
)
def test_why_a_diagram_is_not_drawn(source: str, reason: str) -> None:
    with pytest.raises(NotDrawn) as refused:
        draw(source, "light")
    assert str(refused.value) == reason


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        "<foreignObject/>",
        '<g onload="alert(1)"/>',
        '<g ONLOAD="alert(1)"/>',
        f'<rect fill="url({EVIL})"/>',
        f"<rect style=\"fill:url( '{EVIL}')\"/>",
        f'<rect style="fill:\\75 rl({EVIL})"/>',
        f"<style>@import '{EVIL}';</style>",
        f"<style>*{{fill:URL({EVIL})}}</style>",
        '<a xmlns="http://www.w3.org/1999/xhtml"/>',
        "<g>",
    ],
)
def test_a_picture_that_holds_more_is_refused(inside: str) -> None:
    """Whatever the library would draw one day."""
    with pytest.raises(Unsafe):
        checked(DRAWN % inside, "")


def test_a_document_type_is_refused() -> None:
    """It could declare entities that grow without bound."""
    with pytest.raises(Unsafe):
        checked('<!DOCTYPE svg [<!ENTITY a "aaaa">]>' + DRAWN % "<text>&a;</text>", "")


@pytest.mark.parametrize("box", ["", "0 0 0 10", "0 0 nan 10", "0 0 1e999 10", "0 0 10"])
def test_a_picture_without_a_size_is_refused(box: str) -> None:
    with pytest.raises(Unsafe):
        checked(f'<svg xmlns="{SVG[1:-1]}" viewBox="{box}"/>', "")


def test_links_are_left_out() -> None:
    """The picture is whole without them; those within it stay, because arrows and icons are used by them."""
    xlink = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
    picture = checked(
        DRAWN % f'<a {xlink} xlink:href="{EVIL}"><text>x</text></a><use {xlink} xlink:href="#a"/><use href="{EVIL}"/>',
        "",
    )
    assert EVIL not in picture
    assert '="#a"' in picture
