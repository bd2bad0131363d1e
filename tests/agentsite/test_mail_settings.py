"""The settings of e-mail, of where people reach the site, and of what browsers are given to keep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsite.env import Environment
from agentsite.errors import CannotStart
from tests.agentsite.processes import run, variables

NAMES = (
    "AGENTSITE_URL EMAIL_BACKEND EMAIL_PORT EMAIL_USE_SSL EMAIL_USE_TLS DEFAULT_FROM_EMAIL"
    " SESSION_COOKIE_NAME CSRF_COOKIE_NAME AGENTSITE_PROXIES"
)
PRINT = f"""
import json
from agentsite import settings
print(json.dumps([getattr(settings, name) for name in {NAMES.split()}]))
"""


def settings(folder: Path, **more: str) -> dict[str, object]:
    """What these variables make of the settings above."""
    ended = run("-c", PRINT, environment=variables(folder, **more))
    assert ended.returncode == 0, ended.stderr
    return dict(zip(NAMES.split(), json.loads(ended.stdout), strict=True))


def test_with_no_server_mails_go_to_the_console(tmp_path: Path) -> None:
    found = settings(tmp_path, PORT="8123")
    assert found["EMAIL_BACKEND"] == "django.core.mail.backends.console.EmailBackend"
    assert found["AGENTSITE_URL"] == "http://127.0.0.1:8123"
    assert (found["SESSION_COOKIE_NAME"], found["CSRF_COOKIE_NAME"]) == ("sessionid", "csrftoken")
    assert found["AGENTSITE_PROXIES"] == 0


def test_with_a_server_they_are_sent(tmp_path: Path) -> None:
    mail = {"EMAIL_HOST": "mail.example", "DEFAULT_FROM_EMAIL": "Site <site@example.org>"}
    found = settings(tmp_path, AGENTSITE_URL="https://agents.example/", AGENTSITE_HTTPS="1", **mail)
    assert found["EMAIL_BACKEND"] == "django.core.mail.backends.smtp.EmailBackend"
    assert (found["EMAIL_PORT"], found["EMAIL_USE_TLS"], found["EMAIL_USE_SSL"]) == (587, True, False)
    assert found["AGENTSITE_URL"] == "https://agents.example"
    assert found["DEFAULT_FROM_EMAIL"] == "Site <site@example.org>"
    assert found["SESSION_COOKIE_NAME"] == "__Host-sessionid"  # (C4)
    assert found["AGENTSITE_PROXIES"] == 1
    assert settings(tmp_path, AGENTSITE_HTTPS="1", AGENTSITE_PROXIES="2")["AGENTSITE_PROXIES"] == 2
    assert settings(tmp_path, EMAIL_PORT="465", **mail)["EMAIL_USE_SSL"]
    assert not settings(tmp_path, EMAIL_PORT="465", **mail)["EMAIL_USE_TLS"]  # Django refuses both
    assert not settings(tmp_path, EMAIL_USE_TLS="0", **mail)["EMAIL_USE_TLS"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"EMAIL_HOST": "mail.example"}, "set DEFAULT_FROM_EMAIL to the address that e-mails come from"),
        ({"DEFAULT_FROM_EMAIL": "agents"}, "DEFAULT_FROM_EMAIL is 'agents': write an address like"),
        ({"EMAIL_PORT": "smtp"}, "EMAIL_PORT is 'smtp': write a number"),
        ({"AGENTSITE_URL": "agents.example"}, "AGENTSITE_URL is not a valid URL"),
        (
            {"EMAIL_HOST": "mail.example", "DEFAULT_FROM_EMAIL": "a@example.org", "AGENTSITE_HTTPS": "1"},
            "set AGENTSITE_URL to the address that links in e-mails lead to",
        ),
    ],
)
def test_what_makes_no_sense_stops_the_start(tmp_path: Path, more: dict[str, str], says: str) -> None:
    ended = run("manage.py", "serve", environment=variables(tmp_path, **more))
    assert ended.returncode == 2
    assert says in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("good", ["a@b.example", "Site <site@example.org>", "Ann's site <a+b@example.org>", ""])
def test_an_address_that_mails_come_from(good: str) -> None:
    assert Environment({"FROM": good}).mailbox("FROM") == good


@pytest.mark.parametrize("bad", ["a b@c", "Site <site>", "a@b, c@d", "Site <a@b> x", "a@b\nBcc: c@d", "@b"])
def test_what_is_no_address(bad: str) -> None:
    with pytest.raises(CannotStart, match=r"FROM is .* write an address like"):
        Environment({"FROM": bad}).mailbox("FROM")
