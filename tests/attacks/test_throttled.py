"""Guessing passwords from as many addresses as one line has, and through proxies that write ports."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import IPv6Address

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from conversations.accounts import throttle
from tests.conversations.support import PASSWORD, person

pytestmark = pytest.mark.django_db
HERE = "198.51.100.7"


@pytest.fixture
def ann(settings: Settings) -> User:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a quick one
    return person("ann")


def signs_in(at: str) -> bool:
    """Whether Ann's right password is taken from this address."""
    sent = {"username": "ann", "password": PASSWORD}
    return Client(REMOTE_ADDR=at).post(reverse("login"), sent).status_code == 302


def guesses(count: int, start: str, networks: int) -> None:
    """So many wrong passwords, each with a name of its own, by turns from so many /64 networks in a row."""
    first = int(IPv6Address(start))
    addresses = (str(IPv6Address(first + (number % networks << 64))) for number in range(count))
    AccessAttempt.objects.bulk_create(
        AccessAttempt(username=f"x{number}", ip_address=address, failures_since_start=1, attempt_time=timezone.now())
        for number, address in enumerate(addresses)
    )


@pytest.mark.parametrize("prefix", ["2001:db8:1", "2001:db8:0", "2001:0:0", "2a02:0:10"])
def test_whoever_has_a_56_has_no_more_guesses(ann: User, prefix: str) -> None:
    """A household: 256 networks. The next /56 is another."""
    guesses(99, f"{prefix}:ff00::", 256)
    assert signs_in(f"{prefix}:ffff::1")
    guesses(1, f"{prefix}:ff30::", 1)
    assert not signs_in(f"{prefix}:ffff::1")
    assert signs_in(f"{prefix}:fe00::1")
    assert signs_in(f"{prefix}:ff::1")


@pytest.mark.parametrize("prefix", ["2001:db8:1", "2001:db8:0", "2001:0:0", "2a02:0:10"])
def test_whoever_has_a_48_has_not_either(ann: User, prefix: str) -> None:
    """A company: 65,536 networks. The next /48 is another."""
    guesses(199, f"{prefix}::", 65_536)
    AccessAttempt.objects.filter(ip_address=f"{prefix}::").delete()
    guesses(1, f"{prefix}:f000::", 1)
    assert signs_in(f"{prefix}:ffff::1")
    guesses(1, f"{prefix}::", 1)
    assert not signs_in(f"{prefix}:ffff::1")
    assert signs_in("2001:db8:11::1")
    assert signs_in("2001:0:1::1")


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("192.0.2.1:52344", "192.0.2.1"),
        ("192.0.2.66, 192.0.2.1:1", "192.0.2.1"),
        ("[2001:db8:1:2::9]:443", "2001:db8:1:2::"),
        ("[2001:db8:1:2::9]", "2001:db8:1:2::"),
        ("[::ffff:192.0.2.1]:443", "192.0.2.1"),
        ("2001:db8:1:2::443", "2001:db8:1:2::"),
        ("[192.0.2.1", HERE),
        ("192.0.2.1:x", HERE),
        ("192.0.2.1:1:2", HERE),
        ("[2001:db8::1]443", HERE),
    ],
)
def test_a_proxy_may_write_the_port(settings: Settings, forwarded: str, address: str) -> None:
    settings.AGENTSITE_PROXIES = 1
    request = RequestFactory().get("/", REMOTE_ADDR=HERE, headers={"X-Forwarded-For": forwarded})
    assert throttle.client_address(request) == address


@pytest.mark.django_db(transaction=True)
def test_guesses_that_arrive_at_once_are_all_counted(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each password takes a while to look at. No more are than the limit says, and the right one among them is not."""
    looked_at, together = list[str](), threading.Barrier(20)
    look = ModelBackend.authenticate

    def slowly(backend: ModelBackend, request: HttpRequest | None, username: str, password: str) -> User | None:
        looked_at.append(password)
        with suppress(threading.BrokenBarrierError):
            together.wait(timeout=2)  # for those that should not come this far
        return look(backend, request, username, password)

    monkeypatch.setattr(ModelBackend, "authenticate", slowly)

    def guess(number: int) -> int:
        try:
            sent = {"username": "ann", "password": f"guess {number}"}
            return Client(REMOTE_ADDR=HERE).post(reverse("login"), sent).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(guess, range(20)))
    assert len(looked_at) <= 5
    assert answers.count(429) >= 15
    (attempt,) = AccessAttempt.objects.all()
    assert attempt.failures_since_start == len(looked_at)


def test_staff_have_no_other_page_to_guess_on(ann: User) -> None:
    """Django's own page for a new password looked at any number of old ones, at a screen left open."""
    ann.is_staff = True
    ann.save()
    client = Client(REMOTE_ADDR=HERE)
    client.force_login(ann)
    sent = {"old_password": PASSWORD, "new_password1": "guess-two-22", "new_password2": "guess-two-22"}
    for answer in (client.get("/admin/password_change/"), client.post("/admin/password_change/", sent)):
        assert (answer.status_code, answer.headers["Location"]) == (302, reverse("password_change"))
    ann.refresh_from_db()
    assert ann.check_password(PASSWORD)


@pytest.mark.django_db(transaction=True)
def test_a_sign_in_that_succeeds_leaves_nothing(ann: User) -> None:
    assert signs_in(HERE)
    assert not AccessAttempt.objects.exists()
