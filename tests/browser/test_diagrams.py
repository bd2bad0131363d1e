"""Diagrams on the page: drawn, enlarged, saved, refused in words, and readable in both themes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import Site, serving
from tests.browser.test_axe import finds_nothing
from tests.browser.test_first_turn import say
from tests.browser.turns import says
from tests.conversations.pictures.corpus import KINDS, STYLED

pytestmark = pytest.mark.browser

ALL = {**KINDS, "styled": STYLED}
BROKEN = "flowchart LR\n  A[Begin --> B"
WIDE = "flowchart LR\n" + "\n".join(f"  A{n}[Step {n}] --> A{n + 1}[Step {n + 1}]" for n in range(14))
TALL = "flowchart TD\n" + "\n".join(f"  A{n}[Step {n}] --> A{n + 1}[Step {n + 1}]" for n in range(24))
PARAGRAPHS = "This is a paragraph.\n\n" * 12


def fence(source: str) -> str:
    return f"```mermaid\n{source.strip()}\n```\n\n"


TURNS: dict[str, list[dict[str, Any]]] = {
    "Draw one.": [says(f"This is how it goes:\n\n{fence(KINDS['flowchart'])}That is all.")],
    "Draw all.": [says("".join(f"## {kind}\n\n{fence(source)}" for kind, source in ALL.items()))],
    "Draw badly.": [says(f"It goes so:\n\n{fence(BROKEN)}Or not.")],
    "Draw large ones.": [says(f"Wide:\n\n{fence(WIDE)}Tall:\n\n{fence(TALL)}The end.")],
    "Draw slowly.": [{"text": f"{PARAGRAPHS}{fence(KINDS['sequence'])}{PARAGRAPHS}The end.", "pause_seconds": 0.03}],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose model draws."""
    with serving(tmp_path_factory.mktemp("diagrams"), TURNS) as site:
        yield site


def asks(page: Page, site: Site, message: str, end: str) -> None:
    """Send a message in a new conversation, and wait until the answer has come."""
    say(page, site, message)
    expect(page.get_by_text(end, exact=True).last).to_be_visible()
    expect(page.locator(".turn-foot").last).to_be_visible()


def is_drawn(figure: Locator) -> None:
    """Wait until the picture is shown, in place of the source."""
    expect(figure).not_to_have_class(re.compile("waiting"))
    expect(figure.locator("img:visible")).to_have_count(1)
    assert (
        figure.locator("img:visible").evaluate("async (img) => { await img.decode(); return img.naturalWidth; }") > 100
    )


def width_of(element: Locator) -> float:
    return float(element.evaluate("(element) => element.getBoundingClientRect().width"))


def theme(page: Page, name: str) -> None:
    page.evaluate("(name) => { document.documentElement.dataset.theme = name; }", name)


def test_a_diagram_is_drawn(page: Page, site: Site) -> None:
    """In place of its source, which is below. Nothing is asked of another site."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    asks(page, site, "Draw one.", "That is all.")
    figure = page.locator("figure.diagram")
    is_drawn(figure)
    expect(figure.locator(".code-head")).to_contain_text("Flowchart")
    expect(figure.locator("pre")).to_be_hidden()
    figure.get_by_text("Source").click()
    expect(figure.locator("pre")).to_contain_text("A[Shop order]")
    assert {urlsplit(url).netloc for url in asked} == {urlsplit(site.url).netloc}
    drawn = [url for url in asked if "/diagrams/" in url]
    assert len({urlsplit(url).query for url in drawn}) == 1, "the hidden picture was loaded, too"
    finds_nothing(page)


def test_the_theme_of_the_page_is_that_of_the_picture(page: Page, site: Site) -> None:
    asks(page, site, "Draw one.", "That is all.")
    figure = page.locator("figure.diagram")
    for name in ("dark", "light"):
        theme(page, name)
        is_drawn(figure)
        expect(figure.locator("img:visible")).to_have_attribute("src", re.compile(f"theme={name}$"))


def test_zoom(page: Page, site: Site) -> None:
    """A dialog, closed by Escape, after which the focus is where it was."""
    asks(page, site, "Draw one.", "That is all.")
    is_drawn(page.locator("figure.diagram"))
    opener = page.get_by_role("button", name="Zoom")
    opener.click()
    dialog = page.get_by_role("dialog", name="Flowchart")
    picture = dialog.get_by_role("img")
    expect(picture).to_be_visible()
    before = width_of(picture)
    for _ in range(4):
        dialog.get_by_role("button", name="Larger").click()
    assert width_of(picture) > 2 * before
    pane = dialog.get_by_role("group", name="Picture")
    at = pane.evaluate("(pane) => pane.scrollLeft")
    page.mouse.move(640, 450)
    page.mouse.down()
    page.mouse.move(540, 450, steps=5)
    page.mouse.up()
    assert pane.evaluate("(pane) => pane.scrollLeft") > at
    dialog.get_by_role("button", name="Fit").click()
    assert abs(width_of(picture) - before) < 2
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()


def test_copying_and_saving(page: Page, site: Site, context: BrowserContext, tmp_path: Path) -> None:
    """The source, the SVG and a PNG in twice the size, named as the conversation is."""
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    asks(page, site, "Draw one.", "That is all.")
    figure = page.locator("figure.diagram")
    is_drawn(figure)
    figure.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()").strip() == KINDS["flowchart"].strip()
    saved = {}
    for kind in ("SVG", "PNG"):
        with page.expect_download() as download:
            figure.get_by_role("button", name=f"Download as {kind}").click()
        saved[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[kind])
    assert [file.name for file in saved.values()] == ["Draw one..svg", "Draw one..png"]
    assert saved["SVG"].read_text().startswith("<svg ")
    width = figure.locator("img:visible").evaluate("(img) => img.naturalWidth")
    assert int.from_bytes(saved["PNG"].read_bytes()[16:20]) == 2 * width


def test_a_diagram_that_cannot_be_drawn(away: Page, site: Site) -> None:
    """Its source stays, with the reason below. The browser's console tells of the refused picture."""
    asks(away, site, "Draw badly.", "Or not.")
    figure = away.locator("figure.diagram")
    expect(figure.locator(".reason")).to_have_text("Not drawn. Unterminated node label (missing `]`).")
    expect(figure.locator("pre")).to_be_visible()
    expect(figure.get_by_role("button", name="Zoom")).to_be_hidden()


@pytest.mark.parametrize("width", [390, 1280])
def test_large_diagrams_stay_in_their_box(page: Page, site: Site, width: int) -> None:
    """A wide one pans within it and a tall one, too; the page scrolls nowhere sideways."""
    page.set_viewport_size({"width": width, "height": 844})
    asks(page, site, "Draw large ones.", "The end.")
    for figure in page.locator("figure.diagram").all():
        figure.scroll_into_view_if_needed()
        is_drawn(figure)
        assert width_of(figure) <= width
        assert figure.evaluate("(figure) => figure.offsetHeight < .9 * innerHeight")
    wide = page.locator(".canvas").first
    assert wide.evaluate("(box) => box.scrollWidth > box.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".scroll").evaluate("(pane) => pane.scrollWidth <= pane.clientWidth")


def test_the_end_is_followed_while_it_is_drawn(page: Page, site: Site) -> None:
    """And once the text is recorded, the picture is there at once: it had come before."""
    asks(page, site, "Draw slowly.", "The end.")
    figure = page.locator("figure.diagram")
    is_drawn(figure)
    gap = page.locator(".scroll").evaluate("(pane) => pane.scrollHeight - pane.scrollTop - pane.clientHeight")
    assert gap < 60


@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_text_of_every_kind_can_be_read(page: Page, site: Site, browser: Browser, name: str) -> None:
    """Each text of each picture has a contrast of 4.5 or more with what is drawn behind it."""
    asks(page, site, "Draw all.", "styled")
    theme(page, name)
    for figure in page.locator("figure.diagram").all():
        figure.scroll_into_view_if_needed()
        is_drawn(figure)
    sources = [img.get_attribute("src") for img in page.locator("figure.diagram img:visible").all()]
    assert len(sources) == len(ALL)
    weak = {kind: weak for kind, source in zip(ALL, sources, strict=True) if (weak := _weak(page, site, str(source)))}
    assert not weak


_CONTRASTS = """
async () => {
  const root = document.documentElement, found = [];
  const parse = (colour) => { const n = colour.match(/[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
  const linear = (p) => p <= .04045 ? p / 12.92 : ((p + .055) / 1.055) ** 2.4;
  const light = (c) => { const [r, g, b] = c.map((p) => linear(p / 255)); return .2126 * r + .7152 * g + .0722 * b; };
  const over = (top, alpha, below) => below.map((part, n) => top[n] * alpha + part * (1 - alpha));
  const all = [...root.querySelectorAll("rect, circle, ellipse, polygon, path")];
  const shapes = all.filter((one) => !one.closest("defs, marker, symbol"));
  for (const text of root.querySelectorAll("text")) {
    const words = text.textContent.trim(), box = text.getBoundingClientRect();
    if (!words || !box.width) continue;
    const x = box.x + box.width / 2, y = box.y + box.height / 2;
    let behind = parse(getComputedStyle(root).backgroundColor).slice(0, 3);
    for (const shape of shapes) {
      const style = getComputedStyle(shape), point = root.createSVGPoint(), to = shape.getScreenCTM();
      if (style.display === "none" || style.visibility === "hidden" || !to) continue;
      Object.assign(point, { x, y });
      const at = point.matrixTransform(to.inverse());
      const opacity = Number(style.opacity);
      if (style.fill !== "none" && style.fill.startsWith("rgb") && shape.isPointInFill(at)) {
        const [r, g, b, a] = parse(style.fill);
        behind = over([r, g, b], a * Number(style.fillOpacity) * opacity, behind);
      }
      if (style.stroke.startsWith("rgb") && shape.isPointInStroke(at) && parseFloat(style.strokeWidth) > 8) {
        const [r, g, b, a] = parse(style.stroke);
        behind = over([r, g, b], a * Number(style.strokeOpacity) * opacity, behind);
      }
    }
    const disc = text.matches(".sequenceNumber") && root.querySelector("[id$=sequencenumber] circle"); // a marker
    if (disc) behind = parse(getComputedStyle(disc).fill).slice(0, 3);
    const words_ = text.querySelector("tspan tspan, tspan") ?? text, fill = parse(getComputedStyle(words_).fill);
    const front = over(fill.slice(0, 3), fill[3], behind);
    const [high, low] = [light(front), light(behind)].sort((a, b) => b - a), ratio = (high + .05) / (low + .05);
    if (ratio < 4.5) found.push(`${words}: ${ratio.toFixed(1)}, ${front.map(Math.round)} on ${behind.map(Math.round)}`);
  }
  return found;
}
"""


def _weak(page: Page, site: Site, source: str) -> list[str]:
    """Open a picture by itself, and return its texts that are hard to read."""
    alone = page.context.new_page()
    try:
        answer = alone.request.get(site.url + source)
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        alone.set_content(f"<!doctype html><body>{answer.text()}")
        return list(alone.evaluate(_CONTRASTS.replace("document.documentElement", "document.querySelector('svg')")))
    finally:
        alone.close()
