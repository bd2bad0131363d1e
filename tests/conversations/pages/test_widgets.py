"""Charts, tables and files on the page: drawn by the server, and harmless whatever they contain."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.test import Client

from conversations.erasure.steps import redact
from conversations.models import File, Step
from tests.conversations.live_page import Element, parsed
from tests.conversations.support import Story, person

pytestmark = pytest.mark.django_db

STATIC = Path(__file__).parents[3] / "conversations/static/conversations"
HOSTILE = '</title><script>alert(1)</script>\u202e<img src=x onerror=alert(1)>"'


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna")
    client.force_login(user)
    return user


def shown(client: Client, owner: User, widget: str, data: dict[str, Any], fallback: str = "In words.") -> str:
    """Return the HTML of the panel with this widget, on its page."""
    story = Story(owner)
    story.asks_model()
    call = story.call("chart.show")
    story.answers(call)
    story.emits(call, "widget", widget=widget, data=data, fallback=fallback)
    html = client.get(f"/c/{story.conversation.pk}/").text
    found = re.search(r'<section class="panel widget">.*?</section>', html, re.DOTALL)
    assert found
    return found[0]


def chart(kind: str = "bar", count: int = 3, runs: int = 1, **more: Any) -> dict[str, Any]:
    series = [{"name": f"Run {n}", "values": [float(n + at) for at in range(count)]} for n in range(runs)]
    return {
        "title": "Sums",
        "kind": kind,
        "labels": [f"L{n}" for n in range(count)],
        "series": series,
        "unit": "EUR",
        **more,
    }


def every(element: Element, tag: str) -> list[Element]:
    """Return the elements with this tag."""
    below = [found for child in element.elements for found in every(child, tag)]
    return [element, *below] if element.tag == tag else below


def classed(html: str, tag: str, name: str) -> list[Element]:
    return [each for each in every(parsed(html), tag) if name in each.attributes.get("class", "").split()]


def test_a_few_bars_are_a_table_of_bars_and_figures(client: Client, owner: User) -> None:
    html = shown(client, owner, "chart", chart(series=[{"name": "x", "values": [640, -20.5, 0]}]))
    (table,) = classed(html, "table", "bars")
    assert [row.text() for row in every(table, "tr")] == ["L0 640.00", "L1 \u221220.50", "L2 0.00"]
    assert [bar.attributes["width"] for bar in classed(html, "rect", "bar")] == ["96.90%", "3.10%", "0.00%"]
    assert len(classed(html, "line", "zero")) == 3
    assert not classed(html, "ul", "legend")  # there is one series
    assert "EUR" in html


def test_more_bars_and_lines_have_an_axis_words_and_every_figure(client: Client, owner: User) -> None:
    for kind, shape in (("bar", "rect"), ("line", "polyline")):
        html = shown(client, owner, "chart", chart(kind, 40, 2), "Sums, in EUR. Up.")
        (plot,) = classed(html, "div", "plot")
        assert (plot.attributes["role"], plot.attributes["aria-label"]) == ("img", "Sums, in EUR. Up.")
        assert len(classed(html, shape, "bar" if kind == "bar" else "line")) == (82 if kind == "bar" else 2)
        assert [each.text() for each in every(classed(html, "ul", "legend")[0], "li")] == ["Run 0", "Run 1"]
        rows = every(classed(html, "details", "figures")[0], "tr")
        assert [row.text() for row in rows] == ["Run 0 Run 1", *(f"L{n} {n} {n + 1}" for n in range(40))]
        assert "<title>L3: Run 0 3, Run 1 4 EUR</title>" in html


def test_a_table_is_a_table(client: Client, owner: User) -> None:
    data = {"title": "T", "columns": ["No", "Sum"], "rows": [["a", 640], [None, 12000.5]]}
    html = shown(client, owner, "table", data)
    (table,) = classed(html, "table", "grid")
    assert [row.text() for row in every(table, "tr")] == ["No Sum", "a 640.0", "\u2013 12,000.5"]
    assert "rows</span>" not in html
    assert "60 rows</span>" in shown(client, owner, "table", data | {"rows": [["a", 1]] * 60})
    assert "No rows." in shown(client, owner, "table", data | {"rows": []})


def said(words: str) -> str:
    """The panel of what is said instead of drawn."""
    return f'<section class="panel widget"><p class="typed">{words}</p></section>'


def without_breaks(html: str) -> str:
    """Without the white space between tags."""
    return re.sub(r">\s+<", "><", html)


@pytest.mark.parametrize("widget", ["chart", "table"])
@pytest.mark.parametrize("data", [{}, {"rows": [1]}, {"title": 1}, chart(labels=["one"])])
def test_what_cannot_be_drawn_is_said_in_words(client: Client, owner: User, widget: str, data: dict[str, Any]) -> None:
    """Data of another version, or of a tool that uses the name for something else."""
    assert without_breaks(shown(client, owner, widget, data)) == said("In words.")


@pytest.mark.parametrize("fallback", ["Sums: 640.", ""])
def test_what_was_taken_out_is_not_drawn(
    client: Client, owner: User, fallback: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is it logged as a failure: nothing is wrong."""
    story = Story(owner)
    story.asks_model()
    call = story.call("chart.show")
    story.answers(call)
    story.emits(call, "widget", widget="chart", data=chart(), fallback=fallback)
    story.comes_to(call, "Shown.")
    story.ends()
    redact(story.conversation, [Step.objects.get(type="widget").seq], owner, "A secret.")
    html = client.get(f"/c/{story.conversation.pk}/").text
    words = "[redacted]" if fallback else "This content cannot be displayed."
    assert said(words) in without_breaks(html)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    ("widget", "data"),
    [
        ("chart", chart(count=2, labels=[HOSTILE] * 2, title=HOSTILE, unit="<i>\u202e")),
        ("chart", chart("bar", 40, 2, labels=[HOSTILE] * 40, title=HOSTILE, unit="<i>\u202e")),
        ("chart", chart("line", 2, labels=[HOSTILE] * 2, series=[{"name": HOSTILE, "values": [1, 2]}] * 2)),
        ("table", {"title": HOSTILE, "columns": [HOSTILE], "rows": [[HOSTILE]]}),
    ],
)
def test_hostile_figures_are_only_text(client: Client, owner: User, widget: str, data: dict[str, Any]) -> None:
    html = shown(client, owner, widget, data, HOSTILE)
    assert "&lt;script&gt;" in html
    for forbidden in ("<script", "<img", "<i>", "\u202e", " style="):
        assert forbidden not in html
    assert not [each for each in every(parsed(html), "svg") if {"span", "img"} & {child.tag for child in each.elements}]
    assert not re.search(r'="[^"]*"[^ />]', html)  # no attribute ends before its end


def test_a_file_is_a_row_with_its_name_summary_size_and_download(client: Client, owner: User) -> None:
    """S8; the download is what was written, and it is never rendered here."""
    story = Story(owner)
    story.asks_model()
    call = story.call("report.write")
    story.answers(call)
    row = File(conversation=story.conversation, name="q3.md", media_type="text/markdown", size=1900, sha256="0")
    row.content.save("x", ContentFile(b"# Q3"))
    story.emits(call, "file", file=row.pk, name="q3.md", summary="Q3: four <b>rows</b>")
    html = client.get(f"/c/{story.conversation.pk}/").text
    text = re.sub(r"[ \n]+", " ", re.sub("<[^>]*>", " ", html))
    assert "q3.md Q3: four &lt;b&gt;rows&lt;/b&gt; \u00b7 1.9\u00a0KB" in text
    answer = client.get(f"/files/{row.pk}/")
    assert b"".join(answer) == b"# Q3"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="q3.md"'


def test_every_colour_of_a_series_can_be_told_from_the_page() -> None:
    """WCAG 1.4.11: a contrast of 3:1 with the background, in both themes."""
    css = (STATIC / "tokens.css").read_text() + (STATIC / "widgets.css").read_text()
    tokens = dict(re.findall(r"--([\w-]+):\s*([^;]+);", css))
    for theme in (0, 1):
        page = _colour(tokens, "bg", theme)
        for series in range(1, 7):
            assert _contrast(_colour(tokens, f"series-{series}", theme), page) >= 3, (theme, series)


def _colour(tokens: dict[str, str], name: str, theme: int) -> str:
    if alias := re.fullmatch(r"var\(--([\w-]+)\)", tokens[name]):
        return _colour(tokens, alias[1], theme)
    return str(re.findall("#([0-9a-f]{6})", tokens[name])[theme])


def _contrast(one: str, other: str) -> float:
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
