"""Somebody with a browser that runs no scripts: pages over HTTP, with cookies, hidden fields and redirects."""

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
"""Between two looks: one person may send 600 requests a minute."""

T = TypeVar("T")


def until(look: Callable[[], T | None]) -> T:
    """Ask until the answer is true, and return it. Ends the program after PATIENCE_SECONDS."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        if found := look():
            return found
        time.sleep(LOOK_SECONDS)
    raise SystemExit("What the visitor waits for did not come.")


@dataclass
class VisitedForm:
    """A form of a page: what it sends where, and the values of its buttons as `name=value`."""

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
        """Take in forms and what is in them."""
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
        """The first form with this field, or with this button."""
        return next((each for each in self.forms if field in each.fields or button in each.buttons), None)


def _sent(given: dict[str, str]) -> bool:
    kind = given.get("type", "text")
    return kind not in ("file", "submit", "checkbox", "radio") or "checked" in given


class Visitor:
    """A person at the site at this address."""

    def __init__(self, site: str) -> None:
        self.site = site
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar())
        )

    def answers(self) -> bool:
        """Whether the login page is there."""
        try:
            return "password" in self.get("/login/").html
        except OSError:
            return False

    def get(self, path: str) -> VisitedPage:
        """A page. Raises OSError."""
        return self._open(urllib.request.Request(urljoin(self.site, path)))

    def send(self, form: VisitedForm, page: VisitedPage, **values: str) -> VisitedPage:
        """Send a form of `page` with these values, and follow where it leads. Raises OSError."""
        data = urlencode(form.fields | values).encode()
        return self._open(urllib.request.Request(form.action, data, {"Referer": page.url}))

    def json(self, path: str) -> Any:
        """What the API says there."""
        return json.loads(self.get(path).html)

    def sign_in(self, name: str, password: str) -> VisitedPage:
        """The first page, signed in."""
        page = self.get("/login/")
        return self.send(_there(page.form(field="password")), page, username=name, password=password)

    def say(self, page: VisitedPage, text: str) -> VisitedPage:
        """Write a message on this page; the conversation that it leads to."""
        return self.send(_there(page.form(field="input")), page, input=text)

    def stands_still(self, page: VisitedPage) -> dict[str, Any]:
        """The last turn of the conversation on this page, once it has ended or waits for somebody."""
        number = urlsplit(page.url).path.strip("/").split("/")[1]
        prompts = self.json(f"/api/conversations/{number}/prompts/?page_size=200")["results"]
        last = max(prompt["id"] for prompt in prompts)

        def still() -> dict[str, Any] | None:
            turn: dict[str, Any] = self.json(f"/api/prompts/{last}/")
            return None if turn["state"] in ("queued", "running") else turn

        return until(still)

    def approve(self, page: VisitedPage) -> VisitedPage:
        """Approve the call that waits on this page."""
        page = self.get(page.url)
        return self.send(_there(page.form(button="decision=approve")), page, decision="approve")

    def _open(self, request: urllib.request.Request) -> VisitedPage:
        with self._opener.open(request, timeout=PATIENCE_SECONDS) as answer:
            return VisitedPage(answer.url, answer.read().decode())


def said(turn: dict[str, Any]) -> str:
    """All that was said in a turn."""
    return "\n".join(output["text"] for output in turn["outputs"] if output["type"] == "text")


def _there(form: VisitedForm | None) -> VisitedForm:
    if form is None:
        raise SystemExit("The page lacks the form that a visitor would use.")
    return form
