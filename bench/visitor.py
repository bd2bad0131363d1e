"""A visitor with a browser that runs no scripts: pages over HTTP, with cookies, hidden fields and redirects."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from typing import Any, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 0.15
"""Seconds between two requests: one person may send 600 a minute."""

T = TypeVar("T")


def until(look: Callable[[], T | None]) -> T:
    """Call `look` until it returns something true, and return that. Ends the program after PATIENCE_SECONDS."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        if found := look():
            return found
        time.sleep(LOOK_SECONDS)
    raise SystemExit(f"Gave up after waiting for {PATIENCE_SECONDS:.0f} seconds.")


@dataclass
class VisitedForm:
    """A form of a page: its address, its fields, and its buttons as `name=value`."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    buttons: set[str] = field(default_factory=set)


class VisitedPage(HTMLParser):
    """A page with its forms."""

    def __init__(self, url: str, html: str) -> None:
        super().__init__()
        self.url, self.html = url, html
        self.forms: list[VisitedForm] = []
        self._textarea = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the forms and their fields."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(VisitedForm(urljoin(self.url, given.get("action", ""))))
        if not self.forms or not given.get("name"):
            return
        name, value, form = given["name"], given.get("value", ""), self.forms[-1]
        if tag == "button":
            form.buttons.add(f"{name}={value}")
        elif tag == "textarea" or (tag == "input" and _sent(given)):
            form.fields[name] = value

    def form(self, *, field: str = "", button: str = "") -> VisitedForm | None:
        """Return the first form with this field, or with this button."""
        return next((each for each in self.forms if field in each.fields or button in each.buttons), None)


def _sent(given: dict[str, str]) -> bool:
    kind = given.get("type", "text")
    return kind not in ("file", "submit", "checkbox", "radio") or "checked" in given


class Visitor:
    """A person who uses the site at this address."""

    def __init__(self, site: str) -> None:
        self.site = site
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar())
        )

    def answers(self) -> bool:
        """Return whether the site shows its login page."""
        try:
            return "password" in self.get("/login/").html
        except OSError:
            return False

    def get(self, path: str) -> VisitedPage:
        """Return a page. Raises OSError."""
        return self._open(urllib.request.Request(urljoin(self.site, path)))

    def send(self, form: VisitedForm, page: VisitedPage, **values: str) -> VisitedPage:
        """Send a form of `page` with these values and return the page that it leads to. Raises OSError."""
        data = urlencode(form.fields | values).encode()
        return self._open(urllib.request.Request(form.action, data, {"Referer": page.url}))

    def json(self, path: str) -> Any:
        """Return the API's response as JSON."""
        return json.loads(self.get(path).html)

    def sign_in(self, name: str, password: str) -> VisitedPage:
        """Sign in and return the first page."""
        page = self.get("/login/")
        return self.send(_there(page.form(field="password")), page, username=name, password=password)

    def say(self, page: VisitedPage, text: str) -> VisitedPage:
        """Send a message on this page and return the page of its conversation."""
        return self.send(_there(page.form(field="input")), page, input=text)

    def wait_for_turn(self, page: VisitedPage) -> dict[str, Any]:
        """Return the last turn of the conversation on this page, once it has ended or waits for a person."""
        number = urlsplit(page.url).path.strip("/").split("/")[1]
        prompts = self.json(f"/api/conversations/{number}/prompts/?page_size=200")["results"]
        last = max(prompt["id"] for prompt in prompts)

        def paused() -> dict[str, Any] | None:
            turn: dict[str, Any] = self.json(f"/api/prompts/{last}/")
            return None if turn["state"] in ("queued", "running") else turn

        return until(paused)

    def approve(self, page: VisitedPage) -> VisitedPage:
        """Approve the call that waits on this page, and return the next page."""
        page = self.get(page.url)
        return self.send(_there(page.form(button="decision=approve")), page, decision="approve")

    def _open(self, request: urllib.request.Request) -> VisitedPage:
        with self._opener.open(request, timeout=PATIENCE_SECONDS) as answer:
            return VisitedPage(answer.url, answer.read().decode())


def text_of(turn: dict[str, Any]) -> str:
    """Return all text of a turn."""
    return "\n".join(output["text"] for output in turn["outputs"] if output["type"] == "text")


def _there(form: VisitedForm | None) -> VisitedForm:
    if form is None:
        raise SystemExit("The page does not have the form that a visitor would use.")
    return form
