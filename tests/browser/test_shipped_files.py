"""The workflows that ship for the files of a workspace, from the selector to the result, with the demo model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.browser.conftest import Site, serving
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser

LEASE = (
    "# The shop\n\nThe lease ends on 31 March 2027. The tenant may end it earlier.\n\nThe rent is 900 EUR a month.\n"
)
SKILL = "---\nname: tea-time\ndescription: When somebody asks for tea.\n---\n\nSay that it is ready at four.\n"
PHONE: ViewportSize = {"width": 390, "height": 844}
DESKTOP: ViewportSize = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Site]:
    """A fresh site, as `make run` starts it."""
    with serving(folder, None, "ann") as site:
        yield site


@pytest.fixture
def workspace(page: Page, site: Site, folder: Path) -> Path:
    """The workspace of a new chat, with documents, a skill, and what may go."""
    page.goto(f"{site.url}/new/")
    page.get_by_label("Message").fill("list files")
    page.get_by_label("Message").press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    number: str = re.findall(r"/c/(\d+)/", page.url)[0]
    workspace = folder / "data" / "workspaces" / number
    assert workspace.is_dir()
    for path, text in {
        "lease.md": LEASE,
        "notes/copy of lease.md": LEASE,
        "notes/draft.tmp": "A draft.",
        "notes/tea.txt": "Tea comes from China.\n",
        "skills/tea/SKILL.md": SKILL,
        "old\u200bname.bak": "Of long ago.",
    }.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    return workspace


def starts(page: Page, title: str, **fields: str) -> None:
    """Choose a workflow from the selector, and start it in the newest chat, with these fields filled in."""
    page.get_by_role("link", name="Workflows", exact=True).click()
    page.get_by_role("link", name=re.compile(title)).first.click()
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    for label, text in fields.items():
        page.locator("main").get_by_label(label).first.fill(text)
    page.get_by_label("Workspace").select_option(index=1)
    finds_nothing(page)
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(r"/c/\d+/"))


def card(page: Page, words: str) -> Locator:
    found = page.locator("article.ask").filter(has_text=words)
    expect(found).to_be_visible()
    page.set_viewport_size(PHONE)
    finds_nothing(page)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
    page.set_viewport_size(DESKTOP)
    return found


def approve(page: Page, words: str) -> None:
    """Approve the card with these words, once it was looked at on a phone too."""
    asked = card(page, words)
    asked.get_by_role("button", name=re.compile("^Approve")).click()
    expect(asked).to_have_count(0)


def choose(asked: Locator, *paths: str) -> None:
    """Tick these of a list."""
    for path in paths:
        asked.get_by_label(path, exact=True).check()
    asked.get_by_role("button", name="Answer").click()
    expect(asked).to_have_count(0)


def result(page: Page) -> Locator:
    found = page.locator(".came").last
    finds_nothing(page)
    return found


def test_files_are_summarised_into_a_report(page: Page, workspace: Path) -> None:
    starts(page, "Summarise files", Files="lease.md\nnotes/*.txt")
    approve(page, "summary.md")
    expect(result(page)).to_contain_text("Summarised 2 files.")
    expect(page.get_by_role("link", name=re.compile(r"summary\.md")).first).to_be_visible()
    assert "The lease ends on 31 March 2027." in (workspace / "summary.md").read_text()


def test_a_question_is_researched_and_its_sources_are_named(page: Page, workspace: Path) -> None:
    starts(page, "Research a question", Question="When does the lease end?")
    approve(page, "research.md")
    expect(result(page)).to_contain_text("lease.md:3")
    assert "`lease.md`, line 3" in (workspace / "research.md").read_text()


def test_a_skill_is_imported_once_its_whole_text_was_seen(page: Page, workspace: Path, site: Site) -> None:
    starts(page, "Import skills")
    expect(page.locator("article.ask")).to_contain_text("Say that it is ready at four.")
    approve(page, "tea-time, which is new")
    expect(result(page)).to_contain_text("Added tea-time.")
    page.goto(f"{site.url}/admin/agents/skill/")
    expect(page.get_by_role("link", name="tea-time")).to_be_visible()


def test_what_a_person_chooses_is_deleted_and_nothing_else(page: Page, workspace: Path) -> None:
    starts(page, "Clean up a workspace")
    expect(page.get_by_role("table").first).to_contain_text("The same content as lease.md.")
    choose(card(page, "What should be deleted?"), "notes/draft.tmp", "old\\u200bname.bak")
    expect(card(page, "cannot be restored")).to_contain_text("notes/draft.tmp")
    expect(page.get_by_role("button", name="Approve and delete")).to_be_visible()
    approve(page, "cannot be restored")
    expect(result(page)).to_contain_text("Deleted 2 files and folders")
    assert not (workspace / "notes" / "draft.tmp").exists()
    assert not (workspace / "old\u200bname.bak").exists()
    assert (workspace / "notes" / "copy of lease.md").exists()


def test_who_rejects_a_card_ends_the_run_with_nothing_done(page: Page, workspace: Path) -> None:
    skill = workspace / "skills" / "tea" / "SKILL.md"
    skill.write_text(SKILL.replace("tea-time", "coffee-time"))
    starts(page, "Import skills")
    asked = card(page, "coffee-time, which is new")
    asked.get_by_text("Reject…").click()
    asked.get_by_role("button", name="Reject", exact=True).click()
    expect(result(page)).to_contain_text("Nothing was imported")
