"""A message that is sent while a turn runs: the page keeps it, says so, and sends it once the turn has ended (S79)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import APIResponse, Browser, BrowserContext, Page, Route, expect

from tests.agentsite.processes import run
from tests.browser.conftest import Site, signed_in
from tests.browser.test_composer import NOTES
from tests.browser.test_first_turn import say
from tests.browser.test_live_page import Line

pytestmark = pytest.mark.browser


def keep(page: Page, text: str) -> None:
    """Send this message while a turn runs or waits."""
    expect(page.locator("[data-stop]")).to_be_visible()
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#later")).to_contain_text("It will be sent when this turn ends, if this page is still open.")
    expect(page.locator("#problem .bad")).to_have_count(0)


def approve(page: Page) -> None:
    page.locator(".ask").first.get_by_role("button", name=re.compile("^Approve")).click()


def approve_elsewhere(context: BrowserContext, address: str) -> Page:
    """Approve what waits in another window, and return it."""
    other = context.new_page()
    other.goto(address)
    approve(other)
    return other


def is_sent(page: Page, *messages: str) -> None:
    """The conversation comes to have just these messages."""
    expect(page.locator(".said .typed")).to_have_text(list(messages))


def is_over(page: Page) -> None:
    """The field is empty, and nothing is kept."""
    expect(page.get_by_label("Message")).to_have_value("")
    expect(page.locator("#later")).to_be_hidden()


def posted_to(page: Page) -> str:
    """What requests that send a message match."""
    return f"**{page.locator('#composer').get_attribute('action')}"


def lose_answer(page: Page) -> None:
    """The site gets the next message of this page, and the page no answer to it."""
    page.route(posted_to(page), lambda route: void(route.fetch()), times=1)


def void(_: APIResponse) -> None:
    """Do not answer: a page that is loaded again gives the request up."""


def sign_in(page: Page, site: Site) -> None:
    """On the page to which the site led."""
    page.wait_for_url(re.compile("/login/"))
    page.get_by_label("User name").fill(site.username)
    page.get_by_label("Password").fill(site.password)
    page.get_by_role("button", name="Sign in").click()


def test_it_is_sent_with_its_files_when_the_turn_has_ended(page: Page, site: Site) -> None:
    """Also while the turn waits for an approval; the field is empty then."""
    say(page, site, "Ask and go on.")
    expect(page.locator(".ask")).to_be_visible()
    page.get_by_label("Attach files").set_input_files(NOTES)
    keep(page, "And then?")
    expect(page.get_by_label("Message")).to_have_value("And then?")
    approve(page)
    is_sent(page, "Ask and go on.", "And then?")
    expect(page.locator(".said .chip")).to_contain_text("notes.txt")
    expect(page.get_by_text("Hello.", exact=True)).to_be_visible()
    expect(page.get_by_label("Message")).to_have_value("")
    expect(page.locator("#later")).to_be_hidden()
    expect(page.locator("#chosen")).to_be_hidden()


def test_what_is_changed_or_taken_back_stays(page: Page, site: Site) -> None:
    """By typing, by another file, or by the button; the button beside Stop keeps it as Enter does."""
    say(page, site, "Ask and go on.")
    keep(page, "And then?")
    page.get_by_label("Message").press_sequentially(" Or not?")
    expect(page.locator("#later")).to_be_hidden()
    page.get_by_role("button", name="Send when this turn has ended").click()
    expect(page.locator("#later")).to_be_visible()
    page.get_by_label("Attach files").set_input_files(NOTES)
    expect(page.locator("#later")).to_be_hidden()
    keep(page, "And then?")
    page.get_by_role("button", name="Don\u2019t send").click()
    expect(page.locator("#later")).to_be_hidden()
    approve(page)
    expect(page.locator("[data-send]")).to_be_visible()
    expect(page.get_by_label("Message")).to_have_value("And then?")
    page.reload()
    is_sent(page, "Ask and go on.")


@pytest.mark.parametrize(("asked", "says"), [("Ask and fail.", "failed"), ("Ask and go on.", "was stopped")])
def test_after_a_turn_that_failed_or_was_stopped_it_stays(page: Page, site: Site, asked: str, says: str) -> None:
    """Its sender did not expect that end: the page says so, and sends nothing by itself."""
    say(page, site, asked)
    keep(page, "And then?")
    if says == "failed":
        approve(page)
    else:
        page.get_by_role("button", name="Stop").click()
    expect(page.locator("#later")).to_contain_text(f"This turn {says}, so your message was not sent.")
    expect(page.get_by_label("Message")).to_have_value("And then?")
    page.reload()
    is_sent(page, asked)
    page.get_by_label("Message").press("Enter")
    is_sent(page, asked, "And then?")


def test_it_outlives_a_reload_and_a_lost_connection(page: Page, context: BrowserContext, site: Site) -> None:
    """The turn ends while nobody hears of it here; back, the page sends it, once."""
    line = Line(page)
    address = say(page, site, "Ask and go on.")
    keep(page, "And then?")
    page.reload()
    expect(page.locator("#later")).to_contain_text("will be sent")
    expect(page.locator("#offline")).to_be_hidden()
    line.cut()
    expect(page.locator("#offline")).to_be_visible()
    other = approve_elsewhere(context, address)
    expect(other.get_by_text("It went on.")).to_be_visible()
    expect(other.locator("[data-send]")).to_be_visible()
    is_sent(other, "Ask and go on.")
    line.down = False
    page.evaluate("dispatchEvent(new Event('online'))")
    is_sent(page, "Ask and go on.", "And then?")
    is_sent(other, "Ask and go on.", "And then?")


def test_what_failed_while_the_page_was_away_sends_nothing(page: Page, context: BrowserContext, site: Site) -> None:
    """Who comes back reads that it failed, and finds the message in the field."""
    address = say(page, site, "Ask and fail.")
    keep(page, "And then?")
    page.goto("about:blank")
    other = approve_elsewhere(context, address)
    expect(other.get_by_text("This turn failed")).to_be_visible()
    page.goto(address)
    expect(page.locator("#later")).to_contain_text("This turn failed, so your message was not sent.")
    expect(page.get_by_label("Message")).to_have_value("And then?")
    is_sent(page, "Ask and fail.")


def test_files_do_not_outlive_a_reload_and_the_page_says_so(page: Page, site: Site) -> None:
    """A message without its files is not the message."""
    say(page, site, "Ask and go on.")
    page.get_by_label("Attach files").set_input_files(NOTES)
    keep(page, "And then?")
    page.goto(f"{site.url}/account/")
    page.go_back()
    expect(page.locator("#later")).to_have_text(re.compile("Reloading the page removed your files: attach them again."))
    expect(page.get_by_label("Message")).to_have_value("And then?")


def test_two_windows_send_each_message_once(page: Page, context: BrowserContext, site: Site) -> None:
    """One comes first, and the other waits for its turn; a copy of a window sends nothing of its own."""
    address = say(page, site, "Ask and go on.")
    keep(page, "One more.")
    copy = context.new_page()
    copy.goto(address)
    stored = page.evaluate("JSON.stringify(sessionStorage)")
    copy.evaluate("(stored) => Object.assign(sessionStorage, JSON.parse(stored))", stored)
    copy.reload()
    expect(copy.locator("#later")).to_be_visible()
    other = context.new_page()
    other.goto(address)
    keep(other, "Another.")
    approve(page)
    for window in (page, copy, other):
        expect(window.locator(".said .typed")).to_have_count(3)
        expect(window.get_by_label("Message")).to_have_value("")
        expect(window.locator("[data-send]")).to_be_visible()
    assert sorted(page.locator(".said .typed").all_inner_texts()) == ["Another.", "Ask and go on.", "One more."]


def test_a_turn_that_began_elsewhere_keeps_it_too(page: Page, context: BrowserContext, site: Site) -> None:
    """The page had not heard of it: what the site does not take is kept as well, and not refused in red."""
    address = say(page, site, "Hello there")
    expect(page.locator("[data-send]")).to_be_enabled()
    page.evaluate("window.taken = take; take = () => {}")  # deaf
    other = context.new_page()
    other.goto(address)
    other.get_by_label("Message").fill("Ask and go on.")
    other.get_by_label("Message").press("Enter")
    expect(other.locator(".ask")).to_be_visible()
    page.evaluate("take = window.taken")
    page.get_by_label("Message").fill("And then?")
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#later")).to_contain_text("It will be sent when this turn ends, if this page is still open.")
    expect(page.locator("#problem .bad")).to_have_count(0)
    approve(other)
    is_sent(page, "Hello there", "Ask and go on.", "And then?")


def test_it_is_sent_once_by_a_page_that_comes_back_after_the_end(
    page: Page, context: BrowserContext, site: Site
) -> None:
    """And is not kept any more: not by the page that sent it, nor by the next one."""
    address = say(page, site, "Ask and go on.")
    keep(page, "Ask and fail.")
    page.goto("about:blank")
    other = approve_elsewhere(context, address)
    expect(other.locator("[data-send]")).to_be_visible()
    page.goto(address)
    is_sent(page, "Ask and go on.", "Ask and fail.")
    is_over(page)  # while the turn of that message waits
    expect(page.locator(".ask")).to_be_visible()
    page.reload()
    is_over(page)
    is_sent(page, "Ask and go on.", "Ask and fail.")


def test_a_reload_while_it_is_being_sent_sends_it_once(page: Page, site: Site) -> None:
    """The site has it, but the page did not hear of that: it asks under the same key."""
    say(page, site, "Ask and go on.")
    keep(page, "Ask and fail.")
    lose_answer(page)
    approve(page)
    is_sent(page, "Ask and go on.", "Ask and fail.")
    expect(page.locator(".ask")).to_be_visible()
    page.reload()
    is_over(page)
    approve(page)
    expect(page.get_by_text("This turn failed")).to_be_visible()
    is_over(page)
    is_sent(page, "Ask and go on.", "Ask and fail.")


def test_a_message_sent_before_a_reload_is_taken_once(page: Page, site: Site) -> None:
    """Also one that was not kept: by its key, the page finds it among the turns."""
    say(page, site, "Hello there")
    expect(page.locator("[data-send]")).to_be_enabled()
    lose_answer(page)
    page.get_by_label("Message").fill("Hello again")
    page.get_by_label("Message").press("Enter")
    is_sent(page, "Hello there", "Hello again")
    expect(page.get_by_text("Hello.", exact=True)).to_have_count(2)  # so the site has it: the page shows it before that
    page.reload()
    expect(page.locator("[data-send]")).to_be_enabled()
    expect(page.get_by_label("Message")).to_have_value("")
    is_over(page)
    is_sent(page, "Hello there", "Hello again")


def test_what_is_kept_before_the_message_before_is_answered_stays(page: Page, site: Site) -> None:
    """The socket tells of the turn before the answer does; each message has a key of its own."""
    say(page, site, "Hello there")
    expect(page.locator("[data-send]")).to_be_enabled()
    held: list[tuple[Route, APIResponse]] = []
    page.route(posted_to(page), lambda route: held.append((route, route.fetch())))
    page.get_by_label("Message").fill("Ask and go on.")
    page.get_by_label("Message").press("Enter")
    expect(page.locator(".ask")).to_be_visible()
    page.get_by_label("Message").press("Enter")  # it is being sent: nothing to keep
    expect(page.locator("#later")).to_be_hidden()
    keep(page, "Second.")
    with page.expect_response(posted_to(page)):
        for route, response in held:
            route.fulfill(response=response)
    page.unroute(posted_to(page))
    approve(page)
    is_sent(page, "Hello there", "Ask and go on.", "Second.")
    is_over(page)


@pytest.mark.parametrize("lost", ["the answer", "the message", "both, and the site is busy"])
def test_it_is_sent_again_when_its_answer_is_lost(away: Page, site: Site, lost: str) -> None:
    """Until the site says that it has it, and then it has it once."""
    say(away, site, "Ask and go on.")
    keep(away, "And then?")
    tried: list[str] = []

    def lose(route: Route) -> None:
        tried.append(lost)
        if len(tried) > 1:
            route.continue_()
        elif lost.startswith("both"):
            route.fulfill(status=503, body="")
        elif lost == "the message":
            route.abort()
        else:
            route.fetch()
            route.abort()

    away.route(posted_to(away), lose)
    approve(away)
    is_sent(away, "Ask and go on.", "And then?")
    is_over(away)
    assert len(tried) == 2


@pytest.mark.parametrize("kept", [True, False])
def test_who_was_signed_out_loses_nothing(
    page: Page, browser: Browser, context: BrowserContext, site: Site, kept: bool
) -> None:
    """The page to sign in is no sign that the message was accepted; what was kept is sent once one is back."""
    address = say(page, site, "Ask and go on." if kept else "Hello there")
    elsewhere = browser.new_context()
    other = signed_in(elsewhere.new_page(), site)
    other.goto(address)
    if kept:
        keep(page, "And then?")
        context.clear_cookies(name="sessionid")
        approve(other)
    else:
        expect(page.locator("[data-send]")).to_be_enabled()
        context.clear_cookies(name="sessionid")
        page.get_by_label("Message").fill("And then?")
        page.get_by_label("Message").press("Enter")
    sign_in(page, site)
    if not kept:
        expect(page.get_by_label("Message")).to_have_value("And then?")
        expect(page.locator("[data-send]")).to_be_enabled()
        page.get_by_label("Message").press("Enter")
    is_sent(page, "Ask and go on." if kept else "Hello there", "And then?")
    is_over(page)
    elsewhere.close()


def test_a_new_conversation_cannot_be_sent_by_who_is_signed_out(
    page: Page, context: BrowserContext, site: Site
) -> None:
    """The page knows it, and what was typed is there again after signing in."""
    page.goto(f"{site.url}/new/")
    page.get_by_label("Message").fill("Hello there")
    other = context.new_page()
    other.goto(f"{site.url}/new/")
    other.get_by_role("button", name=site.username).click()
    other.get_by_role("button", name="Sign out").click()
    expect(page.locator("#offline")).to_contain_text("You are signed out.")
    expect(page.locator("[data-send]")).to_be_disabled()
    page.get_by_label("Message").press("Enter")
    page.locator("#offline").get_by_role("button", name="Reload").click()
    sign_in(page, site)
    expect(page.get_by_label("Message")).to_have_value("Hello there")
    page.get_by_label("Message").press("Enter")
    is_sent(page, "Hello there")


def test_its_tier_outlives_a_reload(page: Page, site: Site) -> None:
    """It is sent to the model that was chosen for it."""
    say(page, site, "Ask and go on.")
    page.get_by_text("High", exact=True).click()
    keep(page, "And then?")
    page.reload()
    expect(page.get_by_label("High")).to_be_checked()
    with page.expect_request(posted_to(page)) as sent:
        approve(page)
    assert re.search(r'name="model"\s+high', sent.value.post_data or "")
    is_sent(page, "Ask and go on.", "And then?")


def test_after_a_background_turn_that_was_stopped_it_stays(page: Page, site: Site) -> None:
    """Though that turn is not shown."""
    address = say(page, site, "Hello there")
    expect(page.locator("[data-send]")).to_be_enabled()
    number = address.rstrip("/").rpartition("/")[2]
    hidden = (
        "from conversations.models import Conversation; from conversations.prompts.start import start_prompt; "
        f"found = Conversation.objects.get(pk={number}); "
        "start_prompt(found, found.owner, 'Ask and go on.', visible=False)"
    )
    assert run("manage.py", "shell", "-c", hidden, environment=site.environment).returncode == 0
    expect(page.locator(".ask")).to_be_visible()
    keep(page, "And then?")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#later")).to_contain_text("This turn was stopped, so your message was not sent.")
    expect(page.get_by_label("Message")).to_have_value("And then?")


def test_a_page_that_is_restored_after_hours_does_not_send_it(page: Page, site: Site) -> None:
    """It says so; the message stays in the field."""
    say(page, site, "Ask and go on.")
    keep(page, "And then?")
    page.clock.set_fixed_time(datetime.now().astimezone() + timedelta(hours=5))
    page.reload()
    expect(page.locator("#later")).to_contain_text("You wrote this some hours ago, so it is not sent by itself.")
    approve(page)
    expect(page.locator("[data-send]")).to_be_enabled()
    expect(page.get_by_label("Message")).to_have_value("And then?")
    is_sent(page, "Ask and go on.")


def test_what_was_said_of_a_stopped_turn_goes_with_the_next_turn(page: Page, site: Site) -> None:
    """The message can be kept for that one."""
    say(page, site, "Ask and go on.")
    keep(page, "And then?")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#later")).to_contain_text("This turn was stopped")
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator("[data-stop]")).to_be_visible()
    expect(page.locator("#later")).to_be_hidden()
    page.get_by_role("button", name="Send when this turn has ended").click()
    expect(page.locator("#later")).to_contain_text("It will be sent when this turn ends")


def test_a_link_adds_to_what_is_kept_and_says_that_it_is_not_sent(page: Page, site: Site) -> None:
    """The text of the link is stored, because its address is not."""
    address = say(page, site, "Ask and go on.")
    keep(page, "And then?")
    page.goto(f"{address}?message=Or+not")
    expect(page.locator("#later")).to_contain_text("A link added to your message, so it is not sent by itself.")
    page.reload()
    expect(page.get_by_label("Message")).to_have_value("And then?\nOr not")
    approve(page)
    expect(page.locator("[data-send]")).to_be_enabled()
    is_sent(page, "Ask and go on.")


def test_a_retry_stops_no_turn_whose_stop_button_has_the_focus(away: Page, page: Page, site: Site) -> None:
    """The button has an address of its own, which the message does not go to; it is kept for that turn then."""
    address = say(away, site, "Ask and go on.")
    keep(away, "And then?")
    away.route(posted_to(away), lambda route: route.fulfill(status=503, body=""))
    approve(away)
    expect(away.locator("#later")).to_contain_text("it will be sent again")
    page.goto(address)
    page.get_by_label("Message").fill("Ask and go on.")
    page.get_by_label("Message").press("Enter")
    expect(away.locator(".ask")).to_be_visible()
    away.locator("[data-stop]").focus()
    away.unroute(posted_to(away))
    expect(away.locator("#later")).to_contain_text("It will be sent when this turn ends")
    approve(away)
    is_sent(away, "Ask and go on.", "Ask and go on.", "And then?")
    is_over(away)
