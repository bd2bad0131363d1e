"""Whether a page is whole: measured in the browser, at any width."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page

WIDTHS = {"small phone": 320, "phone": 390, "desk": 1280}
ANSWER_MS_MOST = 10_000
"""Far more than the answer of any page takes, and far less than quadratic time would take."""
MEASURE = (Path(__file__).parent / "whole.js").read_text()
"""Returns at most twelve faults of the page, in words."""


def faults(page: Page) -> list[str]:
    """Return what is not whole on this page, with everything on it opened, at each width."""
    page.wait_for_load_state()
    page.evaluate("document.querySelectorAll('main details, #content details').forEach(each => { each.open = true })")
    found = []
    for name, width in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": 900})
        found += [f"{name}: {fault}" for fault in page.evaluate(MEASURE)]
    return found


def is_whole(page: Page, address: str) -> None:
    """Open a page, and see that it is whole."""
    answer = page.goto(address)
    assert answer is not None
    assert answer.status == 200, address
    assert answer.request.timing["responseStart"] < ANSWER_MS_MOST, address
    assert not (found := faults(page)), f"{address}\n" + json.dumps(found, indent=1, ensure_ascii=False)
