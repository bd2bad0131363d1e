"""A database that somebody else has locked for longer than requests wait, against a running site."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.attacks.doors import Answer, Door, site
from tests.attacks.locked import WAITS_A_SECOND, locked

TEXT = "A long message\nthat nobody wants to write twice. <b>"
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("locked") / "data" / "data" / "agentsite.sqlite3"


@pytest.fixture(scope="module")
def door(database: Path) -> Iterator[Door]:
    with site(database.parents[2], "-c", WAITS_A_SECOND) as door:
        yield door


def post(door: Door, path: str, session: str = "", *headers: str, **fields: str) -> Answer:
    """Send a form as a browser does."""
    token = "c" * 32
    body = urlencode({"csrfmiddlewaretoken": token, **fields}).encode()
    cookies = f"Cookie: csrftoken={token}; sessionid={session}"
    return door.ask(f"POST {path}", FORM, f"Content-Length: {len(body)}", cookies, *headers, body=body)


def test_what_was_written_stays_in_its_field(door: Door, database: Path) -> None:
    """In a new conversation and an old one, with scripts or without: 503, and when to try again."""
    ann = door.people["ann"]
    for path in ("/c/", f"/c/{ann.conversation}/prompts/"):
        with locked(database):
            plain = post(door, path, ann.session, input=TEXT, model="high", key="k")
            open_page = post(door, path, ann.session, "HX-Request: true", input=TEXT, model="high", key="k")
        for answer in (plain, open_page):
            assert (answer.status, answer.headers["Retry-After"]) == (503, "10")
            assert "database is busy with something else, so nothing was stored" in answer.text
        field = re.search(r'<textarea id="message"[^>]*>\n(.*?)</textarea>', plain.text, re.DOTALL)
        assert field
        assert html.unescape(field[1]) == TEXT
        assert "Your text is still here." in open_page.text
    assert post(door, "/c/", ann.session, input=TEXT, key="k").status == 302


def test_other_forms_are_kept_too(door: Door, database: Path) -> None:
    """On a page that sends them again; a field with one word goes along unseen, a password does not."""
    ann = door.people["ann"]
    with locked(database):
        renamed = post(door, f"/c/{ann.conversation}/rename/", ann.session, title=TEXT, kind="x")
        changed = post(
            door, "/account/password/", ann.session, old_password="secret one", new_password1="a b", new_password2="a b"
        )
        signed = post(door, "/login/", username="ann", password="secret one")
    for answer in (renamed, changed, signed):
        assert (answer.status, answer.headers["Retry-After"]) == (503, "10"), answer.text
        assert "secret one" not in answer.text
    kept = re.search(r'<textarea[^>]* name="title"[^>]*>\n(.*?)</textarea>', renamed.text, re.DOTALL)
    assert kept
    assert html.unescape(kept[1]) == TEXT
    assert '<input type="hidden" name="kind" value="x">' in renamed.text
    assert "Send again" not in changed.text + signed.text


def test_a_program_is_told(door: Door, database: Path) -> None:
    """With a code, and when to send it again."""
    ann, body = door.people["ann"], json.dumps({"input": TEXT}).encode()
    sent = (f"POST {ann.upload}", "Content-Type: application/json", f"Content-Length: {len(body)}", ann.bearer)
    with locked(database):
        refused = door.ask(*sent, body=body)
    assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
    assert json.loads(refused.text)["error"]["code"] == "busy"
    assert json.loads(refused.text)["error"]["retry_after"] == 10


def test_pages_are_still_shown(door: Door, database: Path) -> None:
    """Whoever only reads does not wait for a lock of SQLite's."""
    ann = door.people["ann"]
    with locked(database):
        assert door.ask(f"GET /c/{ann.conversation}/", f"Cookie: sessionid={ann.session}").status == 200


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/admin/auth/user/add/", {"username": "new", "password1": "secret one", "password2": "secret one"}),
        ("/admin/auth/user/{id}/change/", {"username": "ann", "date_joined_0": "2026-01-01", "date_joined_1": "00:00"}),
        ("/admin/auth/user/{id}/password/", {"password1": "secret one 4", "password2": "secret one 4"}),
        ("/admin/auth/user/{id}/erase/", {"reason": TEXT}),
        ("/admin/auth/group/add/", {"name": "Deciders"}),
        ("/admin/agents/skill/add/", {"name": "a-skill", "description": "Of use.", "body": TEXT}),
        ("/admin/agents/blueprint/add/", {"name": "a", "when": "b", "text": TEXT}),
        ("/admin/conversations/killswitch/", {"turn": "on", "reason": TEXT}),
        ("/admin/logout/", {}),
    ],
)
def test_the_admin_says_when_to_try_again(door: Door, database: Path, path: str, fields: dict[str, str]) -> None:
    """Every form of it that stores something: 503, and nothing is stored. No password is shown again."""
    chief = door.people["chief"]
    inline = {"quota-TOTAL_FORMS": "0", "quota-INITIAL_FORMS": "0", "usable_password": "true"}
    address = path.format(id=door.people["ann"].id)
    with locked(database):
        refused = post(door, address, chief.session, **inline, **fields)
    assert (refused.status, refused.headers["Retry-After"]) == (503, "10"), refused.text
    assert "secret one" not in refused.text


def test_the_admin_is_still_shown(door: Door, database: Path) -> None:
    """Its lists and forms only read."""
    chief = door.people["chief"]
    with locked(database):
        for page in ("", "auth/user/", "auth/user/add/", "conversations/step/", "conversations/killswitch/"):
            assert door.ask(f"GET /admin/{page}", f"Cookie: sessionid={chief.session}").status == 200, page


def test_whoever_forgot_their_password_is_told_too(door: Door, database: Path) -> None:
    """When they follow their link, and when they choose another password. To ask for a link writes nothing."""
    bob = door.people["bob"]
    followed = door.ask(f"GET {bob.reset}")
    assert followed.status == 302
    session = re.search(r"sessionid=(\w+)", followed.headers["Set-Cookie"])
    assert session
    new = {"new_password1": "secret horse 7", "new_password2": "secret horse 7"}
    with locked(database):
        answers = (
            door.ask(f"GET {bob.reset}"),
            post(door, followed.headers["Location"], session[1], **new),
        )
    for refused in answers:
        assert (refused.status, refused.headers["Retry-After"]) == (503, "10"), refused.text
        assert "secret horse" not in refused.text
    assert post(door, followed.headers["Location"], session[1], **new).status == 302
    assert post(door, "/login/", username="bob", password="secret horse 7").status == 302
