"""Writing: files come by button, paste and drop; keys send or do not; what was not sent stays."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, FilePayload, Locator, Page, expect

from tests.browser.conftest import Site
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser
NOTES: FilePayload = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Milk and bread.\n"}
MB = 1024 * 1024

GIVE = """([type, name, kind]) => {
  const given = new DataTransfer(), file = new File(["picture"], name, { type: kind });
  given.items.add(file);
  const at = document.querySelector(type === "paste" ? "#message" : ".scroll");
  const options = { bubbles: true, cancelable: true };
  at.dispatchEvent(type === "paste" ? new ClipboardEvent(type, { ...options, clipboardData: given })
                                    : new DragEvent(type, { ...options, dataTransfer: given }));
}"""


def chosen(page: Page) -> Locator:
    return page.locator("#chosen .name")


def test_files_by_button_paste_and_drop_are_sent_and_read(page: Page, site: Site) -> None:
    """A chip each, which can be removed; the message shows them; the agent reads one in its workspace."""
    page.goto(f"{site.url}/new/")
    page.get_by_label("Attach files").set_input_files(NOTES)
    for _ in range(2):
        page.evaluate(GIVE, ["paste", "image.png", "image/png"])
    page.evaluate(GIVE, ["dragover", "plan.md", "text/markdown"])
    expect(page.get_by_text("Drop files to attach them")).to_be_visible()
    page.evaluate(GIVE, ["drop", "plan.md", "text/markdown"])
    expect(page.get_by_text("Drop files to attach them")).to_be_hidden()
    expect(chosen(page)).to_have_text(["notes.txt", "pasted-1.png", "pasted-2.png", "plan.md"])
    page.get_by_role("button", name="Remove pasted-1.png").click()
    expect(page.get_by_role("button", name="Remove pasted-2.png")).to_be_focused()
    page.get_by_label("Message").fill("Read what I gave you.")
    page.get_by_label("Message").press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.locator(".said .chip")).to_have_text(
        [re.compile(r"notes\.txt\s+16\sbytes"), re.compile("pasted-2.png"), re.compile("plan.md")]
    )
    expect(page.get_by_text("I read it.")).to_be_visible()
    page.locator(".steps > summary").click()
    page.locator(".step > summary").last.click()
    expect(page.locator(".step-body").last).to_contain_text("Milk and bread.")
    page.locator(".said .chip").first.click()
    expect(page.locator(".preview")).to_contain_text("Milk and bread.")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.path().read_bytes() == NOTES["buffer"]


def test_an_open_conversation_takes_files_and_empties_the_composer(page: Page, site: Site) -> None:
    """Without a reload; the next message has none of them, and files alone are a message."""
    say(page, site, "Hello there")
    expect(page.get_by_text("Hello.")).to_have_count(1)
    page.get_by_label("Attach files").set_input_files(NOTES)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".said .chip")).to_have_count(1)
    expect(page.get_by_text("Hello.")).to_have_count(2)
    expect(page.locator("#chosen")).to_be_hidden()
    expect(page.get_by_label("Message")).to_be_focused()
    expect(page.locator("[data-send]")).to_be_visible()  # the turn before has ended
    page.get_by_label("Message").fill("Again")
    page.get_by_label("Message").press("Enter")
    expect(page.get_by_text("Hello.")).to_have_count(3)
    expect(page.locator(".said .chip")).to_have_count(1)


def test_enter_sends_and_shift_enter_does_not(page: Page, site: Site) -> None:
    """Nor does the Enter that ends a word of an input method; an empty message is explained."""
    page.goto(f"{site.url}/new/")
    field = page.get_by_label("Message")
    field.press("Enter")
    expect(page.get_by_text("Write something first.")).to_be_visible()
    field.press_sequentially("One")
    expect(page.get_by_text("Write something first.")).to_have_count(0)
    field.press("Shift+Enter")
    field.press_sequentially("two")
    for event in ("{ key: 'Enter', isComposing: true }", "{ key: 'Enter', keyCode: 229 }"):
        page.evaluate(f"byId('message').dispatchEvent(new KeyboardEvent('keydown', {event}))")
    expect(field).to_have_value("One\ntwo")
    field.press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))
    expect(page.locator(".said")).to_have_text("One\ntwo", use_inner_text=True)


def test_on_a_touch_screen_enter_is_a_new_line(
    browser: Browser, context: BrowserContext, page: Page, site: Site
) -> None:
    """One line high, and the tier appears when one writes."""
    phone = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, storage_state=context.storage_state()
    )
    touched = phone.new_page()
    touched.goto(f"{site.url}/new/")
    expect(touched.get_by_text("High", exact=True)).to_be_hidden()
    field = touched.get_by_label("Message")
    field.tap()
    expect(touched.get_by_text("High", exact=True)).to_be_visible()
    field.press_sequentially("One")
    field.press("Enter")
    field.press_sequentially("two")
    expect(field).to_have_value("One\ntwo")
    phone.close()


def test_what_was_written_while_a_turn_waits_stays(page: Page, site: Site) -> None:
    """Enter says that it is kept; Stop leaves text and files where they are, and then they can be sent."""
    say(page, site, "Ask and go on.")
    expect(page.locator(".ask")).to_have_count(1)
    field = page.get_by_label("Message")
    expect(field).to_have_attribute("placeholder", "Type your next message")
    field.fill("And then?")
    page.get_by_label("Attach files").set_input_files(NOTES)
    field.press("Enter")
    expect(page.get_by_text("Your message is kept here")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.get_by_text("was stopped, so your message was not sent")).to_be_visible()
    expect(field).to_have_value("And then?")
    expect(chosen(page)).to_have_text(["notes.txt"])
    field.press("Enter")
    expect(page.locator(".said .chip")).to_have_count(1)


def test_what_is_too_much_is_not_attached_and_says_why(page: Page, site: Site) -> None:
    """Before it is sent, by the file's name; what was chosen before stays."""
    page.goto(f"{site.url}/new/")
    page.get_by_label("Attach files").set_input_files(NOTES)
    page.get_by_label("Attach files").set_input_files({**NOTES, "name": "film.mov", "buffer": b"x" * (20 * MB + 1)})
    expect(page.get_by_role("alert")).to_contain_text("a file can have up to 20 MB: film.mov (20.0 MB).")
    expect(chosen(page)).to_have_text(["notes.txt"])
    many: list[FilePayload] = [{**NOTES, "name": f"{n}.txt"} for n in range(11)]
    page.get_by_label("Attach files").set_input_files(many)
    expect(page.get_by_role("alert")).to_contain_text("a message can have up to 10 files: 9.txt, 10.txt.")
    expect(chosen(page)).to_have_count(10)


def test_a_refusal_of_the_site_keeps_text_and_files(page: Page, site: Site) -> None:
    """Also before there is a conversation."""
    page.goto(f"{site.url}/new/")
    page.evaluate("form.dataset.mb = 100")
    page.get_by_label("Attach files").set_input_files({**NOTES, "name": "film.mov", "buffer": b"x" * (20 * MB + 1)})
    page.get_by_label("Message").fill("Look at this.")
    page.get_by_label("Message").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("film.mov is too large. A file can have up to 20 MB.")
    expect(page.get_by_role("alert")).to_contain_text("Your text and your files are still here.")
    expect(page.get_by_label("Message")).to_have_value("Look at this.")
    expect(chosen(page)).to_have_text(["film.mov"])
    page.get_by_role("button", name="Remove film.mov").click()
    page.get_by_label("Message").press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))


def test_a_large_upload_tells_how_far_it_is_and_can_be_cancelled(away: Page, site: Site) -> None:
    """What was to be sent is then still there, and goes through at the next try."""
    away.goto(f"{site.url}/new/")
    line = away.context.new_cdp_session(away)
    line.send("Network.enable")
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": MB}
    line.send("Network.emulateNetworkConditions", slow)
    away.get_by_label("Attach files").set_input_files({**NOTES, "name": "film.mov", "buffer": b"x" * (15 * MB)})
    away.get_by_label("Message").fill("Look at this.")
    away.get_by_label("Message").press("Enter")
    expect(away.get_by_text("Sending 15.0 MB…")).to_be_visible()
    away.get_by_role("button", name="Cancel").click()
    expect(away.get_by_text("Sending 15.0 MB…")).to_be_hidden()
    expect(away.get_by_label("Message")).to_have_value("Look at this.")
    expect(chosen(away)).to_have_text(["film.mov"])
    line.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})
    away.get_by_label("Message").press("Enter")
    away.wait_for_url(re.compile(r"/c/\d+/"))
    expect(away.locator(".said .chip")).to_contain_text("film.mov")


def test_a_draft_is_there_again_after_a_reload(page: Page, site: Site) -> None:
    """Until it is sent."""
    page.goto(f"{site.url}/new/")
    page.get_by_label("Message").fill("Half a thought")
    page.reload()
    expect(page.get_by_label("Message")).to_have_value("Half a thought")
    page.get_by_label("Message").press("Enter")
    page.wait_for_url(re.compile(r"/c/\d+/"))
    page.goto(f"{site.url}/new/")
    expect(page.get_by_label("Message")).to_have_value("")


def test_without_a_script_files_go_with_the_form(
    browser: Browser, context: BrowserContext, page: Page, site: Site
) -> None:
    """The browser's own control shows what was chosen."""
    plain = browser.new_context(java_script_enabled=False, storage_state=context.storage_state())
    bare = plain.new_page()
    bare.goto(f"{site.url}/new/")
    bare.get_by_label("Attach files").set_input_files(NOTES)
    bare.get_by_label("Message").fill("Hello there")
    bare.get_by_role("button", name="Send").click()
    bare.wait_for_url(re.compile(r"/c/\d+/"))
    expect(bare.locator(".said .chip")).to_contain_text("notes.txt")
    plain.close()


def test_what_a_stranger_may_not_send_stays(away: Page, site: Site) -> None:
    """A session that has ended takes no large files: the site says so before it reads them, and all is still there."""
    away.goto(f"{site.url}/new/")
    away.get_by_label("Message").fill("Read this.")
    away.get_by_label("Attach files").set_input_files({**NOTES, "buffer": b"x" * 5 * MB})
    away.context.clear_cookies()
    away.get_by_role("button", name="Send").click()
    expect(away.get_by_text("Not sent. Only people who are signed in")).to_be_visible()
    expect(away.get_by_label("Message")).to_have_value("Read this.")
    expect(chosen(away)).to_have_text(["notes.txt"])


HELD = """() => {
  window.held = [];
  const send = XMLHttpRequest.prototype.send;
  XMLHttpRequest.prototype.send = function (...body) { window.held.push(() => send.apply(this, body)); };
}"""
"""Whatever the page asks for waits until `held` is called."""
SEEN = """() => {
  window.most = 0;
  const count = () => {
    const said = [...document.querySelectorAll(".said")].filter((one) => one.textContent.includes("Good evening."));
    window.most = Math.max(window.most, said.length);
  };
  new MutationObserver(count).observe(document.querySelector(".thread"), { childList: true, subtree: true });
}"""
"""How often the page has shown a message at a time."""


def greet(page: Page, site: Site) -> None:
    """A first turn, which has ended: the next message is not kept back."""
    say(page, site, "Hello there")
    expect(page.get_by_text("Hello.")).to_have_count(1)
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_message_is_shown_at_once_and_then_as_the_site_shows_it(page: Page, site: Site) -> None:
    """It is there before the site has been asked, the field takes the next one, and it is never there twice."""
    greet(page, site)
    page.evaluate(HELD)
    page.evaluate(SEEN)
    field = page.get_by_label("Message")
    field.fill("Good evening.")
    field.press("Enter")
    expect(page.locator("#own .typed")).to_have_text("Good evening.")
    expect(page.locator("#turns .said")).to_have_count(1)
    expect(field).to_have_value("")
    field.fill("And the next one.")
    page.evaluate("held.forEach((send) => send())")
    expect(page.locator("#turns .said").last).to_contain_text("Good evening.")
    expect(page.locator("#own .said")).to_have_count(0)
    expect(page.get_by_text("Hello.")).to_have_count(2)
    expect(field).to_have_value("And the next one.")
    assert page.evaluate("most") == 1


@pytest.mark.parametrize("status", [0, 400, 503])
def test_a_message_that_was_shown_and_is_refused_goes_back_into_the_field(away: Page, site: Site, status: int) -> None:
    """Above what was typed meanwhile; and it can be sent then."""
    greet(away, site)
    away.route("**/prompts/", lambda route: route.fulfill(status=status, body="") if status else route.abort())
    away.evaluate(HELD)
    field = away.get_by_label("Message")
    field.fill("Good evening.")
    field.press("Enter")
    expect(away.locator("#own .typed")).to_have_text("Good evening.")
    field.press_sequentially("Are you there?")
    away.evaluate("held.forEach((send) => send())")
    expect(field).to_have_value("Good evening.\nAre you there?")
    expect(away.locator(".said")).to_have_count(1)
    away.unroute("**/prompts/")
    away.reload()
    expect(field).to_have_value("Good evening.\nAre you there?")
    field.press("Enter")
    expect(away.locator(".said").last).to_contain_text("Are you there?")
    expect(away.get_by_text("Hello.")).to_have_count(2)


def test_a_message_on_its_way_is_kept_over_a_reload(page: Page, site: Site) -> None:
    greet(page, site)
    page.evaluate(HELD)
    page.get_by_label("Message").fill("Good evening.")
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#own .typed")).to_have_text("Good evening.")
    page.reload()
    expect(page.get_by_label("Message")).to_have_value("Good evening.")


def test_a_second_message_waits_for_the_turn_of_the_first_which_is_on_its_way(page: Page, site: Site) -> None:
    """Enter is never without effect: both are sent, each once."""
    greet(page, site)
    page.evaluate(HELD)
    field = page.get_by_label("Message")
    field.fill("Good evening.")
    field.press("Enter")
    field.press("Enter")  # nothing more is typed yet: no complaint
    expect(page.get_by_role("alert")).to_have_count(0)
    field.fill("And good night.")
    field.press("Enter")
    expect(page.get_by_text("Your message is kept here")).to_be_visible()
    page.evaluate("held.splice(0).forEach((send) => send())")
    expect(page.locator("#turns .said").last).to_contain_text("Good evening.")
    page.wait_for_function("() => held.length")
    page.evaluate("held.splice(0).forEach((send) => send())")
    expect(page.locator(".said")).to_contain_text(["Hello there", "Good evening.", "And good night."])
    expect(page.get_by_text("Hello.")).to_have_count(3)
    expect(field).to_have_value("")


def test_a_second_message_is_not_sent_by_itself_once_the_first_was_refused(away: Page, site: Site) -> None:
    """Both stand in the field then, and the person decides."""
    greet(away, site)
    away.route("**/prompts/", lambda route: route.abort())
    away.evaluate(HELD)
    field = away.get_by_label("Message")
    field.fill("Good evening.")
    field.press("Enter")
    field.press_sequentially("And good night.")
    field.press("Enter")
    away.evaluate("held.splice(0).forEach((send) => send())")
    expect(field).to_have_value("Good evening.\nAnd good night.")
    expect(away.get_by_text("Your message is kept here")).to_be_hidden()
    assert away.evaluate("held.length") == 0


@pytest.mark.parametrize("arrives", [False, True])
def test_a_reload_while_a_message_is_on_its_way_loses_nothing(page: Page, site: Site, arrives: bool) -> None:
    """What was typed meanwhile is there, below the message, unless that arrived, and is shown as a turn."""
    greet(page, site)
    page.route("**/prompts/", lambda route: bool(route.fetch()) if arrives else False)  # no answer comes
    field = page.get_by_label("Message")
    field.fill("Good evening.")
    field.press("Enter")
    expect(field).to_have_value("")
    field.press_sequentially("And good night.")
    expect(page.get_by_text("Hello.")).to_have_count(2 if arrives else 1)
    page.reload()
    expect(field).to_have_value("And good night." if arrives else "Good evening.\nAnd good night.")
    expect(page.locator(".said")).to_have_count(2 if arrives else 1)


def test_a_long_message_is_shown_no_longer_than_the_site_will_show_it(page: Page, site: Site) -> None:
    """And a message that takes long to be taken says so."""
    greet(page, site)
    page.evaluate(HELD)
    page.get_by_label("Message").fill("Hello again " * 3000)
    page.get_by_label("Message").press("Enter")
    own = page.locator("#own .said")
    expect(own).to_be_visible()
    assert own.bounding_box()["height"] < 2000  # type: ignore[index]
    expect(page.get_by_text("Sending…")).to_be_visible()
    page.evaluate("held.forEach((send) => send())")
    expect(page.get_by_text("Show all")).to_be_visible()
    expect(page.get_by_text("Sending…")).to_have_count(0)
