"""An app from outside the project, used in the browser with nothing of the project changed (S5).

It is the app that `docs/extending.md` builds, driven by the demo model.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site, serving
from tests.docs.apps import STOCK

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with the app, which lies in a folder of its own, and without a model."""
    folder = tmp_path_factory.mktemp("third-party")
    with serving(folder, None, "ann", **STOCK.build(folder / "elsewhere")) as site:
        yield site


def say(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()  # there once the turn before has ended


def test_its_tools_gate_kind_widget_and_file_work_in_the_browser(page: Page, tmp_path: Path) -> None:
    say(page, 'use stock_order with {"item": "paper", "pieces": 500}')
    card = page.get_by_role("article", name="Order stock")
    expect(card).to_contain_text("Order 500 pieces of paper: more than ten at once")
    card.get_by_role("button", name="Approve").click()
    expect(page.locator(".notice", has_text="Receipt")).to_contain_text("500 paper")

    say(page, "use stock_report")
    expect(page.get_by_role("heading", name="Stock", exact=True)).to_be_visible()
    expect(page.locator("meter").first).to_have_attribute("value", "620")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download stock.csv").click()
    download.value.save_as(tmp_path / "stock.csv")
    assert (tmp_path / "stock.csv").read_text() == "item,pieces\npaper,620\npens,7\n"


def test_its_plugin_keeps_state_with_the_conversation(page: Page) -> None:
    """What it puts together adds up over turns; another conversation has a basket of its own."""
    for times in (1, 2):
        say(page, 'use basket_add with {"item": "pens", "pieces": 3}')
        expect(page.get_by_text(f'"pens": {3 * times}', exact=False).last).to_be_attached()
    page.get_by_role("link", name="New conversation").first.click()
    say(page, 'use basket_add with {"item": "pens", "pieces": 4}')
    expect(page.get_by_text('"pens": 4', exact=False).last).to_be_attached()


def test_its_refusal_is_told(page: Page) -> None:
    say(page, 'use stock_count with {"item": "glue"}')
    expect(page.get_by_text("There is no 'glue'. There are: paper, pens.", exact=False).last).to_be_attached()
