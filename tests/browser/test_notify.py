"""A notice of the browser says once what waits and what has happened, where no window of the site is in view."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.agentsite.processes import run, wait_for
from tests.browser.conftest import Site
from tests.browser.test_first_turn import say

pytestmark = pytest.mark.browser

# A headless browser shows no notices and hides no window: both are played.
PLAYED = """
window.notices = [];
window.out_of_view = false;
window.Notification = class extends EventTarget {
  static permission = "granted";
  constructor(title, { body, tag }) { super(); window.notices.push({ title, body, tag }); }
  close() {}
};
Object.defineProperty(document, "hidden", { get: () => window.out_of_view });
Object.defineProperty(document, "visibilityState", { get: () => (window.out_of_view ? "hidden" : "visible") });
"""


@pytest.fixture(autouse=True)
def _nobody_is_left(browser: Browser, context: BrowserContext) -> Iterator[None]:
    """Close the windows of other browsers after each test: they would go on reporting that somebody looks."""
    yield
    for other in [other for other in browser.contexts if other is not context]:
        other.close()


def hide(page: Page, hidden: bool = True) -> None:
    """Take the window out of view, or bring it back."""
    page.evaluate(f"out_of_view = {str(hidden).lower()}; document.dispatchEvent(new Event('visibilitychange'))")


def notices(*pages: Page) -> list[dict[str, str]]:
    return [notice for page in pages for notice in page.evaluate("notices")]


def elsewhere(browser: Browser, site: Site) -> Page:
    """A window of the same person in another browser."""
    page = browser.new_context().new_page()
    page.goto(site.url)
    page.get_by_label("User name").fill(site.username)
    page.get_by_label("Password").fill(site.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.url}/")
    return page


def test_a_turn_that_waits_is_told_once_while_no_window_is_in_view(
    browser: Browser, context: BrowserContext, page: Page, site: Site
) -> None:
    context.add_init_script(PLAYED)
    other = context.new_page()
    for window, path in ((page, "new/"), (other, "account/")):
        window.goto(f"{site.url}/{path}")
        hide(window)
    phone = elsewhere(browser, site)
    say(phone, site, "Tidy up.")
    wait_for(lambda: notices(page, other))
    page.wait_for_timeout(1000)  # for a second one, which does not come
    told = notices(page, other)
    assert {(notice["title"], notice["body"]) for notice in told} == {("Waiting for you", "Tidy up.")}
    assert len({notice["tag"] for notice in told}) == 1  # of two with one tag a browser shows one

    hide(other, False)
    say(phone, site, "Ask in three windows.")
    expect(other.get_by_role("link", name="Ask in three windows.")).to_contain_text("1 waiting")
    page.wait_for_timeout(1000)
    assert len(notices(page, other)) == len(told)  # somebody looks


def test_nobody_is_told_who_turned_it_off(browser: Browser, context: BrowserContext, page: Page, site: Site) -> None:
    context.add_init_script(PLAYED)
    page.goto(f"{site.url}/account/")
    page.get_by_role("button", name="Turn off").click()
    expect(page.get_by_text("Notifications in this browser are off.")).to_be_visible()
    hide(page)
    say(elsewhere(browser, site), site, "Tidy up.")
    expect(page.get_by_role("link", name="Tidy up.").first).to_contain_text("1 waiting")
    page.wait_for_timeout(1000)
    assert notices(page) == []


def test_each_conversation_is_news_by_its_own_clock(
    browser: Browser, context: BrowserContext, page: Page, site: Site
) -> None:
    """Another that waits was asked later, by a host whose clock is ahead: the notice comes all the same."""
    context.add_init_script(PLAYED)
    say(page, site, "Ask in three windows.")
    page.goto(f"{site.url}/new/")
    link = page.get_by_role("link", name="Ask in three windows.").first
    expect(link).to_contain_text("1 waiting")
    page.evaluate("document.querySelector('[data-asks]').dataset.asks = Date.now() + 3600_000")
    hide(page)
    say(elsewhere(browser, site), site, "Tidy up.")
    wait_for(lambda: notices(page))
    assert [notice["body"] for notice in notices(page)] == ["Tidy up."]


STARTED = """
from django.contrib.auth.models import User
from conversations.models import Account, NoticeKind
from conversations.notifications.notify import notify
from conversations.prompts.start import begin_conversation

ann = User.objects.get(username="ann")
Account.objects.filter(user=ann).update(looked_at=0, **{quiet})
{then}
"""


def happens(site: Site, then: str, **quiet: str) -> None:
    """Something happens in another process, long after the person has last looked at a page."""
    times = {f"quiet_{name}": quiet.get(name) for name in ("from", "to")}
    code = STARTED.format(quiet=times, then=then)
    made = run("manage.py", "shell", "--verbosity", "0", "--command", code, environment=site.environment)
    assert made.returncode == 0, made.stderr


def test_a_turn_that_ended_while_nobody_watched_is_told_with_its_page(
    context: BrowserContext, page: Page, site: Site
) -> None:
    context.add_init_script(PLAYED)
    page.goto(f"{site.url}/account/")
    hide(page)
    happens(site, "begin_conversation(ann, 'Answer while I am away.')")
    wait_for(lambda: notices(page))
    assert [(notice["title"], notice["body"]) for notice in notices(page)] == [("Ended", "Answer while I am away.")]
    hide(page, False)
    page.wait_for_timeout(500)
    hide(page)
    page.wait_for_timeout(1000)
    assert len(notices(page)) == 1  # not again


def test_many_are_one_notice_and_none_comes_in_quiet_hours(context: BrowserContext, page: Page, site: Site) -> None:
    """They come once the quiet hours are over."""
    context.add_init_script(PLAYED)
    page.goto(f"{site.url}/account/")
    hide(page)
    four = "for n in range(4): notify(ann, NoticeKind.TRIGGER, title=f'Trigger {n}', link='/account/')"
    happens(site, four, **{"from": "00:00", "to": "23:59:59"})
    expect(page.locator("#news li[data-heading='Switched off']")).to_have_count(4)
    page.wait_for_timeout(1000)
    assert notices(page) == []
    happens(site, "notify(ann, NoticeKind.TRIGGER, title='Trigger 4', link='/account/')")  # no quiet hours any more
    wait_for(lambda: notices(page))
    told = notices(page)
    assert [(notice["title"], notice["body"]) for notice in told] == [
        ("5 notifications", "Trigger 4, Trigger 3, Trigger 2, …")
    ]
