"""Which pages are looked at, and how one gets to each. Names are those of the files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.agentsite.processes import ROOT, run
from tests.browser.screenshots import turns
from tests.browser.screenshots.camera import Camera
from tests.browser.test_forms import fills

View = Callable[[Camera], Page]


def at(path: str) -> View:
    """A page by its address."""
    return lambda camera: camera.goes(path)


def outside(path: str) -> View:
    """A page that somebody sees who is not signed in."""

    def view(camera: Camera) -> Page:
        camera.stranger.goto(f"{camera.site.url}{path}")
        return camera.stranger

    return view


def chat(conversation: str, more: str = "", *, scrolled_to: str = "") -> View:
    """A conversation, at its end or where a part of it comes into view."""

    def view(camera: Camera) -> Page:
        page = camera.opens(conversation, f"{more}#now")
        expect(page.locator(".exchange").first).to_be_visible()
        if scrolled_to:
            page.locator(scrolled_to).first.evaluate("element => element.scrollIntoView({block: 'start'})")
        return page

    return view


def steps_open(camera: Camera) -> Page:
    """What a turn did, opened."""
    page = camera.opens("invoices")
    page.locator(".steps > summary").first.click()
    page.locator(".step > summary").nth(1).click()
    page.locator(".thread").first.evaluate("element => element.scrollIntoView()")
    return page


def conversation_menu(camera: Camera) -> Page:
    """What one does with a conversation."""
    page = camera.opens("backup")
    page.locator("#menu-button").click()
    return page


def policy_input(camera: Camera) -> Page:
    """A turn of a program, with what it was given and what it did opened."""
    page = camera.opens("policy-done")
    page.locator(".said summary").first.click()
    page.locator(".steps > summary").first.click()
    page.locator(".exchange").first.evaluate("element => element.scrollIntoView()")
    return page


def menu_open(camera: Camera) -> Page:
    """The menu in the foot of the list."""
    page = camera.goes("/")
    page.locator(".me > button").click()
    return page


def signs_in_wrong(camera: Camera) -> Page:
    page = camera.stranger
    page.goto(f"{camera.site.url}/login/")
    page.get_by_label("User name").fill(f"jonas-{camera.name}")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    return page


def locked_out(camera: Camera) -> Page:
    page = camera.stranger
    for _ in range(6):
        if page.get_by_text("Too many attempts").count():
            break
        signs_in_wrong(camera)
    expect(page.get_by_role("heading", name="Too many attempts")).to_be_visible()
    return page


def new_key(camera: Camera) -> Page:
    page = camera.goes("/account/")
    page.get_by_label("Name", exact=True).fill("Nightly report")
    page.get_by_role("checkbox", name="models with any OpenAI client").check()
    page.get_by_label("Models", exact=True).fill("gpt-5.5, qwen3")
    page.get_by_label("Tokens a day").fill("2000000")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_text("it will not be shown again")).to_be_visible()
    return page


def offline(camera: Camera) -> Page:
    """A page whose socket is closed as soon as it opens."""
    page = camera.page.context.new_page()
    page.route_web_socket(re.compile("/ws/"), lambda socket: socket.close())
    page.goto(f"{camera.site.url}/c/{camera.conversations['backup']}/")
    expect(page.locator("#offline")).to_be_visible()
    return page


def without_space(camera: Camera) -> Page:
    """A page of a site whose disk is full; `stopped_by_switch` makes room."""
    disk_full(camera).touch()
    page = camera.opens("backup")
    expect(page.get_by_text("The site's disk is full.")).to_be_visible()
    return page


def disk_full(camera: Camera) -> Path:
    """Where a process of the site says that it found the disk full."""
    return Path(camera.site.environment["AGENTSITE_DATA"]) / "disk-full"


def stopped_by_switch(camera: Camera) -> Page:
    """A page that was open when the kill switch was turned on."""
    disk_full(camera).unlink(missing_ok=True)
    page = camera.opens("four-eyes")
    why = "The bank reports transfers that nobody asked for."
    made = run("manage.py", "kill_switch", "on", "--reason", why, environment=camera.site.environment)
    assert not made.returncode, made.stderr
    expect(page.get_by_text(why)).to_be_visible()
    return page


def step_by_step(camera: Camera) -> Page:
    """The inspector of a turn, at one of its steps."""
    page = camera.opens("backup")
    page.locator(".used > summary").click()
    page.get_by_role("link", name="View steps").click()
    page.get_by_role("link", name="Previous").click()
    page.wait_for_url(re.compile(r"\?at="))
    return page


def approval(camera: Camera) -> Page:
    """The oldest approval in the admin."""
    page = camera.goes("/admin/conversations/approval/")
    page.locator("#result_list tbody a").first.click()
    expect(page.locator(".approval")).to_be_visible()
    return page


def blueprint(camera: Camera) -> Page:
    """A blueprint that an agent proposed, in the admin."""
    page = camera.goes("/admin/agents/blueprint/?state=proposed")
    page.locator("#result_list tbody a").first.click()
    expect(page.locator("#id_text")).to_be_visible()
    return page


def used_open(camera: Camera) -> Page:
    """What a turn used, opened, with the blueprints that stood in it."""
    page = camera.opens("backup", "#now")
    page.locator(".used summary").last.click()
    expect(page.locator(".spent", has_text="Slow backups")).to_be_visible()
    page.locator(".used").last.scroll_into_view_if_needed()
    return page


def inspected(camera: Camera) -> Page:
    """The steps of that turn."""
    page = used_open(camera)
    page.get_by_role("link", name="View steps").last.click()
    expect(page.get_by_text("Slow backups, version 1")).to_be_visible()
    return page


def edited(camera: Camera, more: str = "") -> Page:
    """A call that needs four eyes, as somebody edited it."""
    page = camera.goes("/admin/conversations/approval/")
    links = page.locator("#result_list tbody tr", has_text="pg_restore").locator("a").first
    return camera.goes(f"{links.evaluate('link => link.pathname')}{more}")


def together(camera: Camera) -> Page:
    """Several in the admin."""
    page = camera.goes("/admin/conversations/approval/")
    links = page.locator("#result_list tbody th a").evaluate_all("all => all.map(one => one.pathname)")
    ids = ",".join(re.findall(r"\d+", " ".join(links))[:3])
    return camera.goes(f"/admin/conversations/approval/together/?ids={ids}")


def inbox(query: str = "", more: str = "") -> Callable[[Camera], Page]:
    """The inbox: on a phone its list, or with `more` a card."""

    def view(camera: Camera) -> Page:
        page = camera.goes(f"/approvals/{query}")
        expect(page.locator(".row").first).to_be_visible()
        if more:
            row = page.locator(".row > a").first
            camera.goes(f"{row.evaluate('link => link.pathname')}{more}")
            expect(page.locator(".solo")).to_be_visible()
        return page

    return view


def sheet_of_inbox(camera: Camera) -> Page:
    """Several of the inbox on one sheet."""
    page = inbox()(camera)
    ids = page.locator(".pick input").evaluate_all("boxes => boxes.slice(0, 3).map(box => box.value).join()")
    return camera.goes(f"/approvals/together/?ids={ids}")


def demo(camera: Camera) -> Page:
    """A first page where the demo model answers."""
    camera.page.goto(f"{camera.demo_url}/new/")
    return camera.page


def unproven(camera: Camera) -> Page:
    """A form that does not prove that it came from the site."""
    page = camera.goes("/account/")
    page.evaluate("document.querySelectorAll('[name=csrfmiddlewaretoken]').forEach(each => each.remove())")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="Your request was not accepted")).to_be_visible()
    return page


def forbidden(camera: Camera) -> Page:
    """What somebody sees who may not: Jonas, who is forgotten again."""
    page = camera.stranger
    page.goto(f"{camera.site.url}/login/?next=/admin/auth/user/")
    page.get_by_label("User name").fill("jonas")
    page.get_by_label("Password").fill(camera.site.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="You don't have permission to do this")).to_be_visible()
    page.context.clear_cookies()
    return page


def broken(camera: Camera) -> Page:
    """What is shown where the site itself fails: a file that needs nothing of it."""
    page, address = camera.page, f"{camera.site.url}/broken/"
    page.route(address, lambda route: route.fulfill(status=500, path=ROOT / "templates" / "500.html"))
    page.goto(address)
    return page


def wrong_form(camera: Camera) -> Page:
    """A form that was sent with faults."""
    page = camera.goes("/workflows/parcel.send/")
    page.get_by_label("Article").fill("a")
    page.get_by_label("Pieces").fill("9999")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_be_visible()
    return page


def filled_form(camera: Camera) -> Page:
    """A form of every kind of field, filled in."""
    page = camera.goes("/workflows/journey.plan/")
    fills(page)
    page.get_by_label("What it is for").fill("Two weeks with the whole family, before the season begins.")
    page.get_by_label("People").fill("4")
    page.get_by_label("Title").focus()
    page.locator("h1").evaluate("heading => heading.closest('main').querySelector('.scroll')?.scrollTo(0, 0)")
    return page


def wrong_table(camera: Camera) -> Page:
    """A table of which two lines cannot run."""
    page = camera.goes("/workflows/parcel.send/batch/")
    page.locator("textarea").first.fill("article,pieces,shop\natlas,3,Harbour\na,3,Station\nglobe,9999,Moon\n")
    page.get_by_role("button", name="Check").first.click()
    expect(page.get_by_role("alert")).to_be_visible()
    return page


def confirming(camera: Camera) -> Page:
    """What is asked before a workflow starts that wants it."""
    page = camera.goes("/workflows/month.close/")
    page.get_by_label("Month").fill("2025-11")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    return page


def slash(typed: str, sees: str) -> View:
    """The menu of the message field, once this was typed."""

    def view(camera: Camera) -> Page:
        page = camera.opens("backup")
        page.get_by_label("Message").fill(typed)
        expect(page.locator("#slash").get_by_text(sees).locator("visible=true").first).to_be_visible()
        return page

    return view


PREFILLED = "/workflows/parcel.send/?article=atlas&pieces=40&gift=Yes&admin=1"

PAGES: dict[str, View] = {
    "chat-streaming": chat("notes"),
    "chat-command": chat("invoices"),
    "chat-answer": chat("invoices", scrolled_to=".exchange"),
    "chat-steps": steps_open,
    "chat-edit": chat("invoices", scrolled_to=".ask"),
    "chat-batch": chat("export"),
    "chat-diff": chat("retry"),
    "chat-chart": chat("chart", scrolled_to=".exchange"),
    "chat-table": chat("chart"),
    "chat-attached": chat("customers", scrolled_to=".exchange"),
    "chat-delete": lambda camera: camera.opens("backup", "delete/"),
    "chat-menu": conversation_menu,
    "chat-sheet": lambda camera: camera.opens("export", "decide/?all=approve"),
    "chat-interrupted": chat("zone"),
    "chat-decided": chat("photos"),
    "chat-policy": chat("policy"),
    "chat-policy-done": chat("policy-done"),
    "chat-policy-input": policy_input,
    "chat-failed": chat("customers"),
    "chat-stopped": chat("stopped"),
    "chat-four-eyes": chat("four-eyes"),
    "chat-expired": chat("expired"),
    "chat-budget": chat("budget"),
    "chat-usage": lambda camera: camera.opens("backup", "usage/"),
    "inspector": step_by_step,
    "chat-document": chat("backup", scrolled_to=".exchange"),
    "workflows": at("/workflows/"),
    "workflows-search": at("/workflows/?q=courier"),
    "workflows-nothing": at("/workflows/?q=zebra"),
    "workflow-form": at("/workflows/parcel.send/"),
    "workflow-wrong": wrong_form,
    "workflow-filled": filled_form,
    "workflow-long": at("/workflows/journey.plan/"),
    "workflow-table": at("/workflows/parcel.send/batch/"),
    "workflow-table-wrong": wrong_table,
    "batch": lambda camera: camera.goes(f"/workflows/batches/{camera.conversations['batch']}/"),
    "batches": at("/workflows/batches/"),
    "workflow-link": at(PREFILLED),
    "workflow-workspace": at("/workflows/prices.compare/"),
    "workflow-in-chat": lambda camera: camera.goes(f"/workflows/prices.compare/in/{camera.conversations['backup']}/"),
    "workflow-no-input": at("/workflows/mail.sum/"),
    "workflow-off": at("/workflows/certificate.renew/"),
    "workflow-confirm": confirming,
    "workflow-runs": at("/workflows/parcel.send/runs/"),
    "runs": at("/workflows/runs/"),
    "runs-none": at("/workflows/runs/?q=zebra"),
    "workflow-runs-failed": at("/workflows/month.close/runs/"),
    "workflow-runs-none": at("/workflows/prices.compare/runs/"),
    "run-waits": chat("run-waits", scrolled_to=".exchange"),
    "run-long": chat("run-long", scrolled_to=".exchange"),
    "run-asks": chat("run-asks"),
    "run-sleeps": chat("run-sleeps"),
    "run-sent": chat("run-sent", scrolled_to=".exchange"),
    "run-done": chat("run-done"),
    "run-failed": chat("run-failed"),
    "run-in-chat": chat(turns.PRICES),
    "slash": slash("/", "Send a parcel"),
    "slash-takes": slash("/parcel.send ", "article=…"),
    "list-runs": at("/?runs=1"),
    "empty": at("/new/"),
    "empty-demo": demo,
    "list": at("/"),
    "list-menu": menu_open,
    "list-archived": at("/?archived=1"),
    "search": at("/?q=the"),
    "search-nothing": at("/?q=zebra"),
    "account": at("/account/"),
    "account-key": new_key,
    "password-change": at("/account/password/"),
    "not-found": at("/no/such/page/"),
    "login": outside("/login/"),
    "login-wrong": signs_in_wrong,
    "login-locked": locked_out,
    "password-reset": outside("/password/"),
    "password-sent": outside("/password/sent/"),
    "password-link-dead": outside("/password/MQ/no-such/"),
    "forbidden": forbidden,
    "unproven": unproven,
    "broken": broken,
    "approvals": inbox(),
    "approvals-card": inbox(more="?"),
    "approvals-edit": inbox("?q=BANK_ENV", more="?as=edit"),
    "approvals-decided": inbox("?show=decided"),
    "approvals-none": at("/approvals/?q=xyzzy"),
    "approvals-together": sheet_of_inbox,
    "admin-start": at("/admin/"),
    "admin-approvals": at("/admin/conversations/approval/"),
    "admin-approval": approval,
    "admin-edited": edited,
    "admin-edit": lambda camera: edited(camera, "?as=edit"),
    "admin-together": together,
    "admin-conversations": at("/admin/conversations/conversation/"),
    "admin-prompts": at("/admin/conversations/prompt/"),
    "admin-workflows": at("/admin/workflows/workflowsetting/"),
    "admin-workflow": at("/admin/workflows/workflowsetting/add/"),
    "admin-system-prompts": at("/admin/agents/systemprompt/"),
    "admin-keys": at("/admin/conversations/apikey/"),
    "admin-skills": at("/admin/agents/skill/"),
    "admin-blueprints": at("/admin/agents/blueprint/"),
    "admin-blueprint": blueprint,
    "chat-blueprints": used_open,
    "inspector-blueprints": inspected,
    "chat-offline": offline,
    "disk-full": without_space,
    "kill-switch": stopped_by_switch,  # the last: from then on nothing runs
}
