"""Secrets reach nothing but the place they belong to, whatever fails and whoever tells them (C20)."""

from __future__ import annotations

import html
import json
import re
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.agentsite.processes import run, wait_for
from tests.browser.conftest import PASSWORD, Site, serving

pytestmark = pytest.mark.crash

CANARIES = {
    "OPENAI_API_KEY": "sk-canary-4711-model",
    "SECRET_KEY": "canary-4712-of-the-site-" + "x7Q" * 20,
    "EMAIL_HOST_PASSWORD": "canary-4713-mail",
}
USERS = "canary-4714 password"
"""Of a login that fails."""


def calls(name: str) -> list[dict[str, Any]]:
    return [{"text": "I do it.", "calls": [{"name": name, "arguments": {}}]}, {"text": "Done."}]


TURNS: dict[str, list[dict[str, Any]]] = {
    "Be refused.": [
        {"refusal": {"status": 401, "message": f"Incorrect API key provided: {CANARIES['OPENAI_API_KEY']}."}}
    ],
    "Fail.": calls("canary_fail"),
    "Tell.": calls("canary_tell"),
    "Run env.": [
        {"text": "I look.", "calls": [{"name": "shell_run", "arguments": {"command": "env; cat /proc/*/environ"}}]},
        {"text": "Done."},
    ],
    "*": [{"text": "Hello."}],
}


@dataclass
class Visitor:
    """Somebody with cookies or a key, who keeps all that the site answers."""

    url: str
    key: str = ""
    heard: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cookies = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def __call__(self, path: str, data: bytes | None = None, status: int = 200, **headers: str) -> str:
        """What the site answers to a GET, or to a POST of `data`."""
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(self.url + path, data, {**headers, "Referer": self.url})
        try:
            with self._opener.open(request, timeout=60) as answer:
                got, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            got, text = error.code, error.read().decode()
        assert got == status, text
        self.heard.append(text)
        return str(text)

    def json(self, path: str, body: dict[str, Any] | None = None, status: int = 200) -> Any:
        data = None if body is None else json.dumps(body).encode()
        return json.loads(self(path, data, status, **({"Content-Type": "application/json"} if data else {})))

    def signs_in(self, password: str) -> None:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self("/login/"))
        assert token
        form = {"username": "ann", "password": password, "csrfmiddlewaretoken": token[1]}
        self("/login/", urlencode(form).encode())

    def cookie(self, name: str) -> str:
        return str(next(each.value for each in self.cookies if each.name == name))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    more = {
        "EMAIL_HOST": "127.0.0.1",
        "EMAIL_PORT": "9",
        "EMAIL_HOST_USER": "ann",
        "DEFAULT_FROM_EMAIL": "site@example.com",
        "AGENTSITE_MAIL_AFTER_SECONDS": "1",
        "AGENTSITE_APPS": "tests.canary",
        "LOG_LEVEL": "DEBUG",
    }
    with serving(tmp_path, TURNS, **CANARIES, **more) as site:
        yield site


def turn(program: Visitor, said: str) -> dict[str, Any]:
    """A turn to its end; what asks is approved."""
    conversation = program.json("/api/conversations/", {}, 201)["id"]
    prompt = program.json(f"/api/conversations/{conversation}/prompts/", {"input": said}, 201)["id"]

    def stands() -> dict[str, Any] | None:
        now: dict[str, Any] = program.json(f"/api/prompts/{prompt}/")
        if now["state"] == "waiting_for_approval":
            for gate in program.json("/api/approvals/")["results"]:
                program.json(f"/api/approvals/{gate['id']}/approve/", {"digest": gate["approval"]["digest"]})
        return now if now["state"] in ("completed", "failed", "cancelled") else None

    ended = wait_for(stands)
    assert ended
    for path in ("steps/", "events/?after=0", "outputs/"):
        program(f"/api/prompts/{prompt}/{path}")
    return ended


def command_lines(log: list[str]) -> None:
    """What the machine shows of all processes to whoever looks."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            log.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue


def test_secrets_stay_where_they_belong(site: Site, tmp_path: Path) -> None:
    made = run("manage.py", "api_key", "ann", environment=site.environment)
    key = made.stdout.strip()
    assert key, made.stderr
    program, person, shown = Visitor(site.url, key), Visitor(site.url), list[str]()
    person.signs_in(USERS)  # is refused
    person.signs_in(PASSWORD)
    session = person.cookie("sessionid")
    states = {said: turn(program, said)["state"] for said in TURNS}
    assert states == dict.fromkeys(TURNS, "completed") | {"Be refused.": "failed"}
    for number, secret in enumerate(CANARIES.values()):
        named = program.json("/api/conversations/", {"title": f"{number} {secret}"}, 201)
        assert named["title"] == f"{number} [secret]"
    command_lines(shown)
    person("/fail/", status=500)
    program("/fail/", status=500)
    program("/api/prompts/999/", status=404)
    Visitor(site.url, key[:-1] + ("a" if key[-1] != "a" else "b"))("/api/conversations/", status=401)
    for conversation in program.json("/api/conversations/")["results"]:
        for path in ("", "export/"):
            person(f"/c/{conversation['id']}/{path}")
        exported = run("manage.py", "export_ledger", str(conversation["id"]), environment=site.environment)
        shown += [exported.stdout, exported.stderr]
    for path in ("/", "/admin/", "/admin/conversations/step/", "/admin/conversations/output/", "/account/", "/healthz"):
        person(path)
    verified = run("manage.py", "verify_ledger", "--all", environment=site.environment)
    assert verified.returncode == 0, verified.stdout
    log = (tmp_path / "serve.log").read_text()
    heard = "\n".join([*program.heard, *person.heard, *shown, verified.stdout, verified.stderr])
    assert "[secret]" in heard  # they were told, and hidden
    assert "[secret]" in log
    kept = kept_in(tmp_path / "data")

    # The password is hidden nowhere: none of the processes that work for people is given it.
    for name, secret in {**CANARIES, "password": PASSWORD, "wrong password": USERS, "key": key}.items():
        assert secret not in heard, name
        assert secret not in log, name
        assert [table for table, text in kept.items() if secret in text] == [], name
    assert session not in heard
    assert session not in log
    assert [table for table, text in kept.items() if session in text] == ["django_session"]


@pytest.mark.parametrize("secret", ["canary-4715-of-a-run", "pä\"\\4/&'"])
def test_the_secret_of_a_run_stays_where_it_belongs(site: Site, tmp_path: Path, secret: str) -> None:
    """A person gives it, people repeat it, and a tool tells it, in real processes."""
    made = run("manage.py", "api_key", "ann", "--scopes", "workflows,decide", environment=site.environment)
    program, person, shown = Visitor(site.url, made.stdout.strip()), Visitor(site.url), list[str]()
    person.signs_in(PASSWORD)
    refused = program.json("/api/workflows/canary.round/run/", {"parameters": {"password": secret[:4]}}, 400)
    assert set(refused["error"]["errors"]) == {"password"}
    prompt = program.json("/api/workflows/canary.round/run/", {"parameters": {"password": secret}}, 202)["id"]
    ended, decided = None, set[int]()

    def moves_on() -> dict[str, Any] | None:
        now: dict[str, Any] = program.json(f"/api/prompts/{prompt}/")
        for gate in program.json("/api/approvals/")["results"] if now["state"] == "waiting_for_approval" else ():
            if gate["id"] in decided:
                continue
            decided.add(gate["id"])
            person(f"/c/{now['conversation']}/")
            said = {"digest": gate["approval"]["digest"]}
            asks = gate["approval"]["ask"] == "question"
            more = {"answer": f"Yes, {secret}"} if asks else {}
            program.json(f"/api/approvals/{gate['id']}/{'answer' if asks else 'approve'}/", said | more)
        return now if now["state"] in ("completed", "failed", "cancelled") else None

    ended = wait_for(moves_on)
    assert ended
    assert ended["state"] == "failed"
    assert len(decided) == 4
    for path in ("", "steps/", "events/?after=0", "outputs/"):
        program(f"/api/prompts/{prompt}/{path}")
    conversation = ended["conversation"]
    for page in (
        f"/c/{conversation}/",
        f"/c/{conversation}/export/",
        f"/prompts/{prompt}/",
        "/workflows/canary.round/runs/",
    ):
        person(page)
    for page in ("/", "/admin/conversations/step/", "/admin/conversations/output/", "/admin/conversations/prompt/"):
        person(page)
    command_lines(shown)
    for command in (("export_ledger", str(conversation)), ("verify_ledger", "--all")):
        told = run("manage.py", *command, environment=site.environment)
        assert told.returncode == 0, told.stdout
        shown += [told.stdout, told.stderr]
    log = (tmp_path / "serve.log").read_text()
    kept = kept_in(tmp_path / "data")
    heard = "\n".join([*program.heard, *person.heard, *shown])
    assert "Welcome, [secret]!" in heard
    assert "with [secret], " in log
    assert kept["conversations_runsecret"] == ""
    forms = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], html.escape(secret)}
    for form in forms | {quote(secret, safe=""), repr(secret)[1:-1], json.dumps(repr(secret)[1:-1])[1:-1]}:
        assert form not in heard
        assert form not in log
        assert [place for place, text in kept.items() if form in text] == []


def kept_in(folder: Path) -> dict[str, str]:
    """What lies in the data folder: each table of the database, and each other file, as text."""
    kept = {}
    for file in folder.rglob("*"):
        if file.is_file() and "sqlite3" not in file.name:
            kept[str(file)] = file.read_bytes().decode(errors="replace")
    (database,) = folder.rglob("*.sqlite3")
    connection = sqlite3.connect(database)
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        kept[table] = "\n".join(map(str, connection.execute(f'SELECT * FROM "{table}"')))
    connection.close()
    return kept
