"""One page with everything that answers can show: every kind of diagram, 60 formulas, 21 languages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site, serving
from tests.browser.everything import EVERYTHING, LANGUAGES
from tests.browser.test_axe import finds_nothing
from tests.browser.test_first_turn import say
from tests.browser.turns import says
from tests.conversations.display.rendering.test_formulas import DRAWN
from tests.conversations.pictures.corpus import KINDS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose model shows everything."""
    with serving(tmp_path_factory.mktemp("everything"), {"*": [says(EVERYTHING)]}) as site:
        yield site


def test_axe_finds_nothing_in_both_themes_and_widths(away: Page, site: Site) -> None:
    """All of it is drawn, and nothing but code, tables and diagrams in their boxes scrolls sideways."""
    say(away, site, "Show everything.")
    expect(away.locator("[data-send]")).to_be_visible()
    diagrams = away.locator("figure.diagram:not(.failed)")
    for figure in away.locator("figure.diagram").all():
        figure.scroll_into_view_if_needed()
        expect(figure.locator("img:visible, .reason")).to_have_count(1)
    assert diagrams.count() == len(KINDS) + 1  # one stands in a list
    assert away.locator(".prose .code").count() == len(LANGUAGES) + 1  # one stands in a quote
    assert away.locator(".prose .formula > math").count() == len(DRAWN)
    finds_nothing(away)
