"""Making a key for the site's models on the account page: what is in view when, and what can be copied."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.agentsite.processes import run
from tests.browser.conftest import Site, signed_in

pytestmark = pytest.mark.browser
LONG = f"hosted/meta-llama-{'x' * 180}"


def keys(page: Page) -> Locator:
    return page.get_by_role("region", name="API keys")


def fields(page: Page) -> list[Locator]:
    """The fields that only a key for models has."""
    labels = ("Models", "Requests a minute", "Requests a day", "Tokens a day")
    return [keys(page).get_by_label(label, exact=True) for label in labels]


def test_the_fields_for_models_are_there_when_they_are_needed(page: Page, site: Site) -> None:
    """Whatever else is wrong, what was typed stays; a field with an error is in view even if its box is not ticked."""
    page.goto(f"{site.url}/account/#keys")
    for field in fields(page):
        expect(field).to_be_hidden()
    models = keys(page).get_by_role("checkbox", name="models with any OpenAI client")
    models.check()
    for field in fields(page):
        expect(field).to_be_visible()
    keys(page).get_by_label("Name", exact=True).fill("Editor")
    fields(page)[0].fill("gpt-5.5\nqwen3")
    models.uncheck()
    keys(page).get_by_role("checkbox", name="Read your").check()
    keys(page).get_by_role("button", name="Create key").click()
    expect(keys(page).get_by_role("alert")).to_have_text(re.compile("Only a key that may use"))
    expect(fields(page)[0]).to_have_value("gpt-5.5\nqwen3")
    expect(fields(page)[0]).to_be_visible()
    models.check()
    keys(page).get_by_role("button", name="Create key").click()
    expect(keys(page).get_by_role("status")).to_contain_text("Key Editor was created.")


def test_what_a_client_needs_is_copied(page: Page, context: BrowserContext, site: Site) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{site.url}/account/#keys")
    keys(page).get_by_label("Name", exact=True).fill("Shell")
    keys(page).get_by_role("checkbox", name="models with any OpenAI client").check()
    keys(page).get_by_role("button", name="Create key").click()
    text = keys(page).get_by_label("The key").input_value()
    wanted = (text, f"{site.url}/v1", f"export OPENAI_BASE_URL={site.url}/v1\nexport OPENAI_API_KEY={text}")
    for number, expected in enumerate(wanted):
        keys(page).get_by_role("button", name=re.compile("^(Copy|Copied)$")).nth(number).click()
        expect(keys(page).get_by_role("button", name="Copied")).to_have_count(number + 1)
        assert page.evaluate("navigator.clipboard.readText()") == expected


def test_a_key_for_models_is_made_without_javascript(browser: Browser, site: Site) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = signed_in(context.new_page(), site)
    page.goto(f"{site.url}/account/#keys")
    keys(page).get_by_label("Name", exact=True).fill("Plain")
    keys(page).get_by_role("checkbox", name="models with any OpenAI client").check()
    fields(page)[0].fill("qwen3")
    keys(page).get_by_role("button", name="Create key").click()
    expect(keys(page).get_by_label("The variables")).to_have_value(re.compile("^export OPENAI_BASE_URL=http"))
    expect(keys(page).get_by_role("listitem").first).to_contain_text("Only qwen3.")
    context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_many_models_with_long_names_fit_on_the_page(page: Page, site: Site, width: int) -> None:
    """On the account page and in the admin; of more than three, the names are behind their number."""
    names = ",".join([LONG, *(f"model-{number}" for number in range(11))])
    made = ("api_key", site.username, "--scopes", "passthrough", "--name", "n" * 100, "--models", names)
    assert run("manage.py", *made, environment=site.environment).returncode == 0
    page.set_viewport_size({"width": width, "height": 900})
    for path, place in (("/account/", keys(page)), ("/admin/conversations/apikey/", page.locator("#result_list"))):
        page.goto(f"{site.url}{path}")
        expect(place.get_by_text(LONG).first).to_be_hidden()
        place.get_by_text(re.compile("12 models")).first.click()
        expect(place.get_by_text(LONG).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert place.evaluate(
            "at => at.scrollWidth <= at.clientWidth && at.getBoundingClientRect().right <= innerWidth"
        )
