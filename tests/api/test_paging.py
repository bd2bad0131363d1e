"""Pagination: pages are limited by the length of their texts, not only by the number of rows."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from conversations.models import Output
from conversations.prompts.start import start_conversation
from tests.api.client import Api
from tests.conversations.recorded import ONE_GATE, Site
from tests.conversations.support import Story, asking

pytestmark = pytest.mark.django_db


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the maximum length of the texts of a page."""
    return lambda characters: monkeypatch.setattr("conversations.api.paging.TEXT_MOST", characters)


def followed(api: Api, address: str) -> list[dict[str, Any]]:
    """Return all pages from this one on."""
    pages: list[dict[str, Any]] = []
    while address:
        pages.append(api.get(address).json())
        address = pages[-1]["next"]
    return pages


def leads_back(api: Api, pages: list[dict[str, Any]]) -> bool:
    """Whether `previous` of each page is the page before it, and the first page has none."""
    before = [api.get(page["previous"]).json()["results"] for page in pages[1:]]
    ends = zip(before, pages, strict=False)
    return pages[0]["previous"] is None and all(page["results"][-1] in found for found, page in ends)


def test_a_page_of_steps_ends_where_it_would_be_too_long(api: Api, ann: User, site: Site, most: Any) -> None:
    """Following `next` and `previous` leaves out nothing and repeats nothing."""
    prompt = site.ended(ann, *ONE_GATE)
    lengths = [len(step.payload) for step in prompt.steps.order_by("seq")]
    longest = max(lengths)
    most(longest - 1)  # so that one step alone is too long
    pages = followed(api, f"/api/prompts/{prompt.pk}/steps/")
    steps = [step["seq"] for page in pages for step in page["results"]]
    assert steps == list(prompt.steps.order_by("seq").values_list("seq", flat=True))
    assert all(page["count"] == len(steps) for page in pages)
    by_seq = dict(zip(steps, lengths, strict=True))
    told = [sum(by_seq[step["seq"]] for step in page["results"]) for page in pages]
    assert len(told) > 2
    assert [len(page["results"]) for page, length in zip(pages, told, strict=True) if length >= longest] == [1]
    assert leads_back(api, pages)


def test_a_page_of_long_messages_has_fewer(api: Api, ann: User, most: Any) -> None:
    """A divisor of the requested size; `next` and `previous` lead through all pages."""
    talk = start_conversation(ann)
    for number in range(7):
        Story(ann, f"{number}" * (90 if number == 3 else 30), talk).ends()
    most(100)
    pages = followed(api, f"/api/conversations/{talk.pk}/prompts/?page_size=4")
    assert [[prompt["number"] for prompt in page["results"]] for page in pages] == [[1, 2], [3], [4], [5], [6], [7]]
    assert {page["count"] for page in pages} == {7}
    assert leads_back(api, pages)


def test_a_page_of_long_approvals_has_fewer(api: Api, ann: User, most: Any) -> None:
    """Each result is whole."""
    for number in range(5):
        asking(ann, f"echo {number}" + "x" * 5_000 * (number == 2))
    longest, usual = sorted(len(output.data) for output in Output.objects.gates())[-1:-3:-1]
    most(2 * usual + 10)
    pages = followed(api, "/api/approvals/?page_size=200")
    commands = [[told["input"]["command"] for told in page["results"]] for page in pages]
    assert [[command[5] for command in page] for page in commands] == [["0", "1"], ["2"], ["3"], ["4"]]
    assert (len(commands[1][0]), longest > 2 * usual) == (5_006, True)
    assert leads_back(api, pages)
