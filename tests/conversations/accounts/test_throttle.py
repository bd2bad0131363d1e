"""Throttling: passwords cannot be guessed, and nobody can lock out another person from elsewhere (C22)."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from axes.models import AccessAttempt, AccessLog
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db.models import F
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse
from pytest_django.fixtures import Settings

from conversations.accounts import throttle
from tests.conversations.support import PASSWORD, person

pytestmark = pytest.mark.django_db
HERE, THERE = "198.51.100.7", "203.0.113.9"


@pytest.fixture(autouse=True)
def _quick(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def sign_in(name: str, password: str = "wrong", *, page: str = "login", at: str = HERE) -> HttpResponse:
    """A try to sign in, by a browser of its own."""
    answer = Client(REMOTE_ADDR=at).post(reverse(page), {"username": name, "password": password, "next": "/"})
    assert isinstance(answer, HttpResponse)
    return answer


def minutes_pass(minutes: float) -> None:
    """As far as failures are concerned."""
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=minutes))


@pytest.fixture
def boss(db: None) -> User:
    return person("boss", is_staff=True, is_superuser=True)


def test_after_five_wrong_passwords_the_right_one_is_refused_too(boss: User) -> None:
    assert [sign_in("boss").status_code for _ in range(5)] == [200, 200, 200, 200, 429]
    refused = sign_in("boss", PASSWORD)
    assert refused.status_code == 429
    assert "Try again in 15 minutes." in refused.content.decode()
    assert 890 <= int(refused.headers["Retry-After"]) <= 900
    assert "sessionid" not in refused.cookies


def test_the_admin_looks_at_no_password(boss: User) -> None:
    """There is one page to sign in, with one limit: the admin only leads there, locked out or not."""
    for password in (*["wrong"] * 6, PASSWORD):
        sent = sign_in("boss", password, page="admin:login")
        assert (sent.status_code, sent.headers["Location"]) == (302, "/login/?next=/admin/")
        assert "sessionid" not in sent.cookies
    assert AccessAttempt.objects.count() == 0
    assert [sign_in("boss").status_code for _ in range(5)][-1] == 429
    assert sign_in("boss", PASSWORD, page="admin:login").headers["Location"] == "/login/?next=/admin/"
    assert sign_in("boss", PASSWORD).status_code == 429


def test_the_page_says_how_many_tries_are_left(ann: User) -> None:
    told = [sign_in("ann").content.decode() for _ in range(4)]
    for left, text in zip(("4 attempts", "3 attempts", "2 attempts", "1 attempt"), told, strict=True):
        assert f"Wrong user name or password. {left} left." in text


def test_a_name_that_nobody_has_is_told_the_same(ann: User) -> None:
    """Neither the number of tries nor the lock says whether there is such a person."""
    of_ann, of_nobody = ([sign_in(name) for _ in range(6)] for name in ("ann", "nobody"))
    for one, other in zip(of_ann, of_nobody, strict=True):
        assert one.status_code == other.status_code
        assert one.content.decode().count("tries") == other.content.decode().count("tries")


def test_it_opens_again_after_a_quarter_of_an_hour(ann: User) -> None:
    for _ in range(5):
        sign_in("ann")
    minutes_pass(14)
    assert "Try again in 1 minute." in sign_in("ann", PASSWORD).content.decode()  # which does not begin it anew
    minutes_pass(1.1)
    assert sign_in("ann", PASSWORD).status_code == 302


def test_each_failure_counts_for_a_quarter_of_an_hour(ann: User) -> None:
    """However many come after it; and a lock lasts until the fifth of the last ones no longer counts."""
    for _ in range(2):
        sign_in("ann")
    minutes_pass(10)
    for _ in range(3):
        sign_in("ann")
    assert "Try again in 5 minutes." in sign_in("ann", PASSWORD).content.decode()
    minutes_pass(5.1)
    assert "2 attempts left." not in sign_in("ann").content.decode()
    assert sign_in("ann").status_code == 429
    minutes_pass(9.8)
    assert "Try again in 1 minute." in sign_in("ann", PASSWORD).content.decode()


def test_others_are_not_locked(ann: User, bob: User) -> None:
    for _ in range(5):
        sign_in("ann")
    assert sign_in("bob", PASSWORD).status_code == 302  # from the same address
    assert sign_in("ann", PASSWORD, at=THERE).status_code == 302  # and the same person from another


def test_a_success_forgets_the_failures(ann: User) -> None:
    for _ in range(3):
        assert [sign_in("ann").status_code for _ in range(4)] == [200] * 4
        assert sign_in("ann", PASSWORD).status_code == 302


def test_fifty_failures_lock_an_address_whatever_the_names(ann: User) -> None:
    assert [sign_in(f"name{n}").status_code for n in range(50)] == [200] * 49 + [429]
    assert sign_in("ann", PASSWORD).status_code == 429
    assert sign_in("ann", PASSWORD, at=THERE).status_code == 302


@pytest.mark.parametrize("at", ["127.0.0.1", "fd00::1", "::ffff:192.168.1.1"])
def test_strangers_behind_an_undeclared_proxy_keep_nobody_out(boss: User, at: str) -> None:
    """All people have the proxy's address then: a few failures count only against their name."""
    assert [sign_in(f"name{n}", at=at).status_code for n in range(60)] == [200] * 60
    assert sign_in("boss", PASSWORD, at=at).status_code == 302
    assert [sign_in("boss", at=at).status_code for _ in range(5)] == [200] * 4 + [429]


@pytest.mark.parametrize("at", ["127.0.0.1", "10.1.2.3", "fd00::1"])
def test_nor_do_they_go_on_for_ever(boss: User, at: str) -> None:
    """A thousand failures lock what everybody may share; no other door is closed by that."""
    sign_in("name", at=at)
    (one,) = AccessAttempt.objects.values("username", "ip_address", "failures_since_start")
    AccessAttempt.objects.bulk_create(AccessAttempt(**one, user_agent=f"{n}") for n in range(997))
    assert [sign_in(f"name{n}", at=at).status_code for n in range(3)] == [200, 429, 429]
    assert sign_in("boss", PASSWORD, at=at).status_code == 429
    assert sign_in("boss", PASSWORD, at=THERE).status_code == 302


def test_a_network_is_limited_in_all(ann: User) -> None:
    """A hundred failures, wherever in it they come from; the neighbouring network is another."""
    began = time.monotonic()
    statuses = [sign_in(f"name{n}", at=f"198.51.100.{n % 250}").status_code for n in range(100)]
    assert statuses == [200] * 99 + [429]
    locked = sign_in("ann", PASSWORD, at="198.51.100.251")
    assert locked.status_code == 429
    assert 899 - (time.monotonic() - began) <= int(locked.headers["Retry-After"]) <= 900
    for other in ("198.51.10.100", "198.51.101.1", THERE, "2001:db8::1"):
        assert sign_in("ann", PASSWORD, at=other).status_code == 302
    minutes_pass(15.1)
    assert sign_in("ann", PASSWORD, at="198.51.100.251").status_code == 302


def test_behind_declared_proxies_each_address_has_its_limit(boss: User, settings: Settings) -> None:
    settings.AGENTSITE_PROXIES = 2

    def through(client: str, name: str, password: str = "wrong") -> int:
        headers = {"X-Forwarded-For": f"1.2.3.4, {client}, 10.0.0.5"}
        sent = {"username": name, "password": password}
        return Client(REMOTE_ADDR="127.0.0.1", headers=headers).post(reverse("login"), sent).status_code

    assert [through("10.9.9.9", f"name{n}") for n in range(50)] == [200] * 49 + [429]  # an office of its own network
    assert through("10.9.9.9", "boss", PASSWORD) == 429
    assert through(THERE, "boss", PASSWORD) == 302


def test_a_success_of_ones_own_does_not_forget_the_guesses_at_others(ann: User, bob: User) -> None:
    """Whoever has an account cannot guess for ever by signing in between."""
    for _ in range(4):
        sign_in("bob")
    assert sign_in("ann", PASSWORD).status_code == 302
    assert sign_in("bob").status_code == 429


def test_a_network_of_ipv6_is_one_address(ann: User) -> None:
    """Or whoever has one would have as many as they like."""
    for n in range(5):
        sign_in("ann", at=f"2001:db8:1:2::{n}")
    assert sign_in("ann", PASSWORD, at="2001:db8:1:2:ffff::1").status_code == 429
    assert sign_in("ann", PASSWORD, at="2001:db8:1:3::1").status_code == 302


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "192.0.2.1", HERE),  # no proxy in front: anybody can write that
        (1, "192.0.2.1", "192.0.2.1"),
        (1, "192.0.2.66, 192.0.2.1", "192.0.2.1"),  # the proxy wrote the last one
        (2, "192.0.2.66, 192.0.2.1, 10.0.0.5", "192.0.2.1"),  # the outer one of two wrote the one before
        (2, "10.0.0.5", HERE),  # one that went past the outer one
        (1, "", HERE),
        (1, "unknown", HERE),
        (1, "::ffff:192.0.2.1", "192.0.2.1"),
        (1, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
    ],
)
def test_where_a_request_comes_from(settings: Settings, proxies: int, forwarded: str, address: str) -> None:
    settings.AGENTSITE_PROXIES = proxies
    request = RequestFactory().get("/", REMOTE_ADDR=HERE, headers={"X-Forwarded-For": forwarded} if forwarded else {})
    assert throttle.client_address(request) == address
    assert throttle.client_address(RequestFactory().get("/", REMOTE_ADDR="")) is None


def test_guessing_the_password_when_signed_in_counts_too(ann: User) -> None:
    """Somebody at a screen left open learns the password no faster than anybody else."""
    client = Client(REMOTE_ADDR=HERE)
    client.force_login(ann)
    wrong = {"old_password": "guess-one", "new_password1": "guess-two-22", "new_password2": "guess-two-22"}
    assert [client.post(reverse("password_change"), wrong).status_code for _ in range(5)] == [200] * 4 + [429]
    assert client.post(reverse("password_change"), {**wrong, "old_password": PASSWORD}).status_code == 429
    kept = "".join(f"{row.get_data} {row.post_data}" for row in AccessAttempt.objects.all())
    assert "guess" not in kept
    assert client.get("/").status_code == 200  # they stay signed in


def test_an_administrator_can_open_it(ann: User) -> None:
    for _ in range(5):
        sign_in("ann")
    call_command("axes_reset")
    assert sign_in("ann", PASSWORD).status_code == 302


def test_what_no_longer_counts_is_not_kept(ann: User) -> None:
    for n in range(8):
        sign_in(f"name{n}")
    minutes_pass(16)
    sign_in("ann", PASSWORD)
    assert not AccessAttempt.objects.exists()
    assert not AccessLog.objects.exists()
