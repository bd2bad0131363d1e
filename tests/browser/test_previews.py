"""Files in a real browser: shown below their rows and on pages of their own, whatever is in them."""

from __future__ import annotations

import json
import re
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.agentsite.processes import run
from tests.browser.conftest import WAIT_MS, Site, serving, signed_in
from tests.browser.nasty.whole import faults
from tests.browser.previews.files import IMAGES, NAMES
from tests.browser.test_axe import finds_nothing

pytestmark = pytest.mark.browser

RECORD = "import json; from tests.browser.previews.files import record; print(json.dumps(record('ann', '{}')))"
BLOCKED = re.compile("Content Security Policy|sandboxed|Unsafe attempt to load|status of 404")
"""What the console may say: that something was blocked, and that an image is not there."""


@dataclass
class Conversation:
    """The conversation with the files: its address, and the ids of its files by name."""

    address: str
    files: dict[str, int]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("previews"), None) as site:
        yield site


class Elsewhere(socketserver.ThreadingTCPServer):
    """Another site. It counts who connects, and keeps what they send."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.2", 0), _Connected)
        self.connected = 0
        self.asked: list[bytes] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.2:{self.server_address[1]}"


class _Connected(socketserver.BaseRequestHandler):
    server: Elsewhere

    def handle(self) -> None:
        self.server.connected += 1
        if sent := self.request.recv(1_000):
            self.server.asked.append(sent)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def conversation(site: Site, elsewhere: Elsewhere) -> Conversation:
    command = RECORD.format(elsewhere.url)
    made = run("manage.py", "shell", "-v", "0", "-c", command, environment=site.environment)
    assert made.returncode == 0, made.stderr
    pk, files = json.loads(made.stdout)
    return Conversation(f"{site.url}/c/{pk}/", files)


@pytest.fixture
def context(browser: Browser, elsewhere: Elsewhere) -> Iterator[BrowserContext]:
    """A person's browser, in which no script of a file runs, and which sends nothing to another site."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(WAIT_MS)
    errors: list[str] = []
    context.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    context.on("weberror", lambda error: errors.append(str(error.error)))
    yield context
    titles = [page.title() for page in context.pages]
    context.close()
    assert elsewhere.asked == []
    assert not [error for error in errors if not BLOCKED.search(error)]
    assert not [title for title in titles if "RAN" in title]


def shown(page: Page, name: str) -> Locator:
    """Open the preview of a file below its row."""
    page.get_by_role("link", name=f"Show {name}", exact=True).click()
    return row(page, name).locator("+ .preview")


def row(page: Page, name: str) -> Locator:
    return page.locator(".file", has=page.get_by_text(name, exact=True))


def test_files_open_below_their_rows_and_close_again(page: Page, conversation: Conversation) -> None:
    page.goto(conversation.address)
    expect(shown(page, "report.pdf").locator("iframe")).to_be_visible()
    expect(shown(page, "sales.csv")).to_contain_text("200 of 600 rows.")
    expect(shown(page, "q3.md").get_by_role("heading", name="Q3 report")).to_be_visible()
    expect(shown(page, "page.html")).to_contain_text("Scripts and remote content are off.")
    expect(shown(page, "totals.py").locator(".c-key").first).to_have_text("def")
    expect(shown(page, "line.log")).to_contain_text("Only the first 200.0\xa0KB are shown.")
    expect(shown(page, "fake.png").locator("code")).to_contain_text("<!doctype html>")
    expect(shown(page, "data.bin")).to_contain_text("This kind of file cannot be shown here.")
    expect(shown(page, "empty.txt")).to_contain_text("This file is empty.")
    code = row(page, "totals.py").locator("+ .preview")
    expect(code.get_by_role("button", name="Copy")).to_be_visible()
    hide = page.get_by_role("link", name="Hide totals.py")
    expect(hide).to_have_attribute("aria-expanded", "true")
    hide.click()
    expect(code).to_have_count(0)
    show = page.get_by_role("link", name="Show totals.py")
    expect(show).to_have_attribute("aria-expanded", "false")
    expect(show).to_be_focused()
    finds_nothing(page)
    assert faults(page) == []


def test_a_preview_stays_open_while_the_conversation_goes_on(page: Page, conversation: Conversation) -> None:
    page.goto(conversation.address)
    table = shown(page, "sales.csv")
    expect(table.get_by_role("table")).to_be_visible()
    page.get_by_label("Message").fill("help")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".exchange")).to_have_count(2)
    expect(page.locator(".exchange").last.locator(".turn .prose").first).to_be_visible()
    expect(table.get_by_role("table")).to_be_visible()


def test_images_are_shown_at_once_and_open_their_pages(page: Page, conversation: Conversation) -> None:
    page.goto(conversation.address)
    for name in IMAGES:
        image = page.locator(".picture").get_by_role("img", name=name)
        image.scroll_into_view_if_needed()
        page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=image.element_handle())
    box = page.get_by_role("img", name="chart.png").bounding_box()
    assert box
    assert box["height"] <= 24 * 16
    page.get_by_role("img", name="chart.png").click()
    page.wait_for_url(f"**/files/{conversation.files['chart.png']}/view/")
    page.get_by_role("link", name="Back to the conversation").click()
    page.wait_for_url(f"**{conversation.address.rpartition('/c/')[1]}*/")


def test_an_answer_shows_images_of_its_conversation_and_the_words_of_others(
    page: Page, conversation: Conversation
) -> None:
    page.goto(conversation.address)
    answer = page.locator(".exchange").first.locator(".turn .prose").last
    answer.scroll_into_view_if_needed()
    image = answer.get_by_role("img", name="Sales")
    page.wait_for_function("image => image.complete && image.naturalWidth === 640", arg=image.element_handle())
    expect(answer).to_contain_text("[Image not shown: Lost]")


def test_a_file_that_was_given_opens_its_page(page: Page, conversation: Conversation) -> None:
    page.goto(conversation.address)
    chip = page.get_by_role("link", name="photo.png")
    thumbnail = chip.locator("img")
    page.wait_for_function("image => image.naturalWidth === 300", arg=thumbnail.element_handle())
    chip.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("photo.png")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "photo.png"


def test_a_hostile_page_does_nothing(page: Page, site: Site, conversation: Conversation, elsewhere: Elsewhere) -> None:
    """In its frame, where its links and forms are used too, and in a window of its own."""
    view, alone = (f"{site.url}/files/{conversation.files['page.html']}/{what}/" for what in ("view", "frame"))
    before = elsewhere.connected
    page.goto(view)
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading")).to_have_text("Quarterly report")
    expect(frame.locator("body")).to_have_css("color", "rgb(1, 2, 3)")
    page.wait_for_load_state("networkidle")
    assert elsewhere.connected == before
    for clicked in ("#send", "#top"):  # for which a browser may connect, before it sees that it may not go there
        frame.locator(clicked).click()
    expect(frame.get_by_role("heading")).to_have_text("Quarterly report")
    page.goto(alone)
    expect(page.get_by_role("heading")).to_have_text("Quarterly report")
    page.locator("#send").click()
    expect(page).to_have_title("Report")
    assert page.url == alone
    page.goto(view)
    frame.locator("#away").click()
    expect(frame.get_by_role("heading")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text("page.html")


def test_images_that_are_more_than_that_are_only_images(page: Page, site: Site, conversation: Conversation) -> None:
    for name, media_type in (("logo.svg", "image/svg+xml"), ("polyglot.html", "image/gif")):
        answer = page.goto(f"{site.url}/files/{conversation.files[name]}/image/")
        assert answer
        assert answer.header_value("Content-Type") == media_type
        page.wait_for_load_state("networkidle")
        assert page.locator("h1").count() == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_each_file(page: Page, site: Site, conversation: Conversation, name: str) -> None:
    address = f"{site.url}/files/{conversation.files[name]}/view/"
    page.goto(address)
    expect(page.get_by_role("heading", level=1).first).to_have_text(name)
    if name not in ("page.html", "report.pdf"):  # what is in frames is of others
        finds_nothing(page)
    assert faults(page) == []


def test_a_browser_without_a_viewer_shows_a_link_in_place_of_a_pdf(
    page: Page, site: Site, conversation: Conversation
) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'pdfViewerEnabled', { value: false })")
    pk = conversation.files["report.pdf"]
    page.goto(f"{site.url}/files/{pk}/view/")
    expect(page.get_by_role("link", name="open it in a new tab")).to_have_attribute("href", f"/files/{pk}/frame/")
    expect(page.locator("iframe")).to_have_count(0)


def test_the_viewer_of_the_browser_shows_a_pdf(page: Page, site: Site, conversation: Conversation) -> None:
    with page.expect_event("framenavigated", lambda frame: frame.url.startswith("chrome-extension://")):
        page.goto(f"{site.url}/files/{conversation.files['report.pdf']}/view/")


def test_without_scripts_a_link_leads_to_the_page(browser: Browser, site: Site, conversation: Conversation) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    page = signed_in(context.new_page(), site)
    page.goto(conversation.address)
    page.get_by_role("link", name="Show q3.md", exact=True).click()
    expect(page.get_by_role("heading", name="Q3 report")).to_be_visible()
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    context.close()


def test_a_preview_of_somebody_who_was_signed_out_leads_to_sign_in(
    page: Page, site: Site, conversation: Conversation
) -> None:
    page.goto(conversation.address)
    link = page.get_by_role("link", name="Show q3.md", exact=True)
    expect(link).to_be_visible()
    page.context.clear_cookies()
    link.click()
    page.wait_for_url(re.compile("/login/"))
