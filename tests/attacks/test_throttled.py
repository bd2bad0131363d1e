"""Guessing passwords: from as many addresses as one line has, through proxies that write ports, and many at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from ipaddress import IPv6Address

import pytest
from asgiref.sync import async_to_sync
from axes.models import AccessAttempt
from django.contrib.auth import aauthenticate
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.http import HttpRequest, HttpResponse
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


class Looking:
    """Sign-ins whose passwords are being looked at, until they are let on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passwords = list[str]()
        self.held: Collection[str] = ()
        self._on = threading.Event()
        look = ModelBackend.authenticate

        def slowly(backend: ModelBackend, request: HttpRequest | None, username: str, password: str) -> User | None:
            self.passwords.append(password)
            if password in self.held:
                assert self._on.wait(timeout=30)
            return look(backend, request, username, password)

        monkeypatch.setattr(ModelBackend, "authenticate", slowly)

    @contextmanager
    def under_way(self, passwords: list[str], looked_at: int) -> Iterator[list[Future[HttpResponse]]]:
        """Send these for Ann at once. So many of them are looked at in the block, and no longer after it."""
        self.held = passwords
        with ThreadPoolExecutor(len(passwords)) as pool:
            sent = [pool.submit(self._send, password) for password in passwords]
            try:
                until = time.monotonic() + 30
                while len(self.passwords) < looked_at or sum(each.done() for each in sent) < len(sent) - looked_at:
                    assert time.monotonic() < until
                    time.sleep(0.01)
                self.held = ()
                yield sent
            finally:
                self._on.set()

    @staticmethod
    def _send(password: str) -> HttpResponse:
        try:
            return sent_to("login", password)
        finally:
            connection.close()


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> Looking:
    return Looking(monkeypatch)


def sent_to(page: str, password: str) -> HttpResponse:
    """What this page says to Ann with this password."""
    answer = Client(REMOTE_ADDR=HERE).post(reverse(page), {"username": "ann", "password": password})
    assert isinstance(answer, HttpResponse)
    return answer


def minutes_pass(minutes: float) -> None:
    """As far as sign-ins are concerned."""
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=minutes))


@pytest.mark.django_db(transaction=True)
def test_guesses_that_arrive_at_once_are_all_counted(ann: User, looking: Looking) -> None:
    """Each password takes a while to look at. No more are than the limit says, and the right one among them is not."""
    with looking.under_way([f"guess {number}" for number in range(20)], 5) as sent:
        pass
    assert len(looking.passwords) == 5
    assert [each.result().status_code for each in sent].count(429) >= 15
    assert sent_to("login", PASSWORD).status_code == 429
    assert [each.failures_since_start for each in AccessAttempt.objects.all()] == [1] * 5


@pytest.mark.django_db(transaction=True)
def test_right_passwords_at_once_keep_nobody_out_for_long(ann: User, looking: Looking) -> None:
    """A program signs in twenty times. It, and the person, had to wait a quarter of an hour."""
    with looking.under_way([PASSWORD] * 20, 5) as sent:
        now = sent_to("login", PASSWORD)
        assert now.status_code == 429
        assert "in a moment" in now.content.decode()
    answers = [each.result() for each in sent]
    assert [each.status_code for each in answers].count(302) == 5
    assert {each.headers["Retry-After"] for each in (*answers, now) if each.status_code == 429} == {"1"}
    assert not AccessAttempt.objects.exists()
    assert signs_in(HERE)


@pytest.mark.django_db(transaction=True)
def test_a_success_forgets_no_guesses_that_are_under_way(ann: User, looking: Looking) -> None:
    """Somebody at the same address guessed while Ann signed in, and had all their tries again."""
    with looking.under_way([f"guess {number}" for number in range(4)], 4) as sent:
        assert signs_in(HERE)
        throttle.forget_failures("ann")
    assert [each.result().status_code for each in sent] == [200] * 4
    assert sent_to("login", "guess 4").status_code == 429


@pytest.mark.django_db(transaction=True)
def test_what_a_dead_process_looked_at_has_failed(ann: User, looking: Looking) -> None:
    """Nobody knows whether the passwords were right."""
    with looking.under_way(["guess"] * 5, 5):
        minutes_pass(2)
        locked = sent_to("login", PASSWORD)
    assert locked.status_code == 429
    assert 770 <= int(locked.headers["Retry-After"]) <= 780


def test_a_right_password_prolongs_no_failures(ann: User) -> None:
    """Where Ann changes her address: that does not forget the failures either."""
    for _ in range(4):
        sent_to("login", "guess")
    minutes_pass(10)
    client = Client(REMOTE_ADDR=HERE)
    client.force_login(ann)
    client.post(reverse("account"), {"email": "new@example.com", "username": "ann", "password": PASSWORD})
    assert AccessAttempt.objects.count() == 4
    minutes_pass(6)
    assert "4 attempts left" in sent_to("login", "guess").content.decode()


def test_passwords_that_a_program_looks_at_in_another_way_count(ann: User) -> None:
    """Django has a second function for it, for async views, which looked at any number."""
    request = RequestFactory().post("/", REMOTE_ADDR=HERE)
    for _ in range(5):
        assert async_to_sync(aauthenticate)(request, username="ann", password="guess") is None
    assert not signs_in(HERE)


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
