"""The account page: name and address, keys, password, sessions."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.cache import cache
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from conversations.accounts import keys
from conversations.accounts.keys import key_from_header, make_key
from conversations.models import Account, ApiKey
from conversations.pages.account import forms
from tests.agentsite.processes import wait_for
from tests.conversations.live_page import parsed
from tests.conversations.support import PASSWORD, person

pytestmark = pytest.mark.django_db
NEW = "a new and longer one"
TEXT = {"first_name": "Mara", "last_name": "Novak", "email": "mara@example.org"}


@pytest.fixture(autouse=True)
def _nothing_remembered(settings: Settings) -> None:
    cache.clear()
    settings.AGENTSITE_URL = "https://agents.example"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # passwords are not what is tested


@pytest.fixture
def mara(db: None) -> User:
    return person("mara", first_name="Mara", last_name="Novak", email="mara@example.org")


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def is_in(client: Client) -> bool:
    return client.get(reverse("account")).status_code == 200


def letters(number: int) -> list[Any]:
    """Return the e-mails that were sent, once there are this many."""
    wait_for(lambda: len(mail.outbox) >= number)
    assert len(mail.outbox) == number
    return mail.outbox


def test_the_page_shows_the_account(mara: User) -> None:
    text = signed_in(mara).get(reverse("account")).content.decode()
    assert "You sign in as mara ; others see you as Mara ." in parsed(text).text()
    assert 'value="mara@example.org"' in text
    assert f'<a href="{reverse("account")}"' in signed_in(mara).get("/").text  # from every page


def test_nobody_else_sees_it() -> None:
    for name in ("account", "password_change"):
        assert Client().get(reverse(name)).status_code == 302


def test_a_name_is_changed_without_a_password(mara: User) -> None:
    client = signed_in(mara)
    assert client.post(reverse("account"), {**TEXT, "first_name": "Marie"}).status_code == 302
    mara.refresh_from_db()
    assert mara.first_name == "Marie"
    assert mara.check_password(PASSWORD)
    assert is_in(client)
    assert "Saved." not in client.get(reverse("account")).content.decode()  # it was said once


def test_another_address_needs_the_password_and_is_told_to_the_old_one(mara: User) -> None:
    """Otherwise anybody at an unlocked screen could have a reset link sent to themselves."""
    client = signed_in(mara)
    other = {**TEXT, "email": "other@example.org"}
    for wrong in ("", "guess"):
        refused = client.post(reverse("account"), {**other, "password": wrong})
        assert refused.status_code == 400
        assert "Enter your current password" in refused.content.decode()
    mara.refresh_from_db()
    assert mara.email == "mara@example.org"

    assert client.post(reverse("account"), {**other, "password": PASSWORD}).status_code == 302
    mara.refresh_from_db()
    assert mara.email == "other@example.org"
    [letter] = letters(1)
    assert letter.to == ["mara@example.org"]
    assert letter.subject == "Your e-mail address was changed"


def test_only_ones_own_name_and_address_can_be_changed(mara: User) -> None:
    more = {"username": "root", "is_staff": "on", "is_superuser": "on", "groups": "1", "password": "x"}
    signed_in(mara).post(reverse("account"), {**TEXT, **more})
    mara.refresh_from_db()
    assert (mara.username, mara.is_staff, mara.is_superuser) == ("mara", False, False)
    assert mara.check_password(PASSWORD)


def test_what_was_changed_meanwhile_stays_so(mara: User) -> None:
    """A password reset or a permission granted while the form was open is not overwritten."""
    request = RequestFactory().post("/")
    request.user = mara
    form = forms.Details(request, mara, {**TEXT, "first_name": "Marie"})
    assert form.is_valid()
    User.objects.filter(pk=mara.pk).update(is_staff=True, password="another", email="moved@example.org")
    Account.objects.create(user=mara, looked_at=7)
    form.save()
    mara.refresh_from_db()
    assert (mara.first_name, mara.is_staff, mara.password) == ("Marie", True, "another")
    assert mara.email == "moved@example.org"
    assert mara.account.looked_at == 7


@pytest.mark.parametrize("form", [forms.NewPassword, forms.ChangePassword])
def test_a_new_password_changes_nothing_else(mara: User, form: Any) -> None:
    new = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    request = RequestFactory().post("/")
    request.user = mara
    filled = form(request, mara, new) if form is forms.ChangePassword else form(mara, new)
    assert filled.is_valid()
    User.objects.filter(pk=mara.pk).update(is_active=False)
    filled.save()
    mara.refresh_from_db()
    assert mara.check_password(NEW)
    assert not mara.is_active


def test_a_key_is_made_and_shown_once(mara: User) -> None:
    client = signed_in(mara)
    page = client.post(reverse("make-key"), {"key-name": "Nightly", "key-scopes": ["chat"], "key-days": "30"})
    assert page.status_code == 201
    assert page.headers["Cache-Control"] == "no-store"
    text = re.search(r'value="(agk_\w+)"', page.content.decode())
    assert text is not None
    key = key_from_header(f"Bearer {text[1]}")
    assert key is not None
    assert (key.name, key.user, key.scopes) == ("Nightly", mara, ["read", "chat"])
    assert key.expiry is not None
    assert timedelta(days=29) < key.expiry - timezone.now() <= timedelta(days=30)

    listed = client.get(reverse("account")).content.decode()
    assert "Nightly" in listed
    assert "May read, start and stop turns." in listed
    assert "OPENAI_BASE_URL" not in page.content.decode()
    assert text[1] not in listed


def test_a_key_for_models_is_shown_with_how_to_use_it(mara: User) -> None:
    """In the shape that clients read; and the list says which models it may use, and how much."""
    client, models = signed_in(mara), "gpt-5.5, qwen3\r\nqwen3\r\n<b>"
    limits = {"key-requests_a_minute": "60", "key-requests_a_day": "", "key-tokens_a_day": "2000000"}
    sent = {"key-name": "Editor", "key-scopes": ["passthrough"], "key-days": "", "key-only_models": models, **limits}
    page = client.post(reverse("make-key"), sent, headers={"Host": "localhost:8000"})
    assert page.status_code == 201
    html = page.content.decode()
    text = re.search(r'value="(agk_\w+)"', html)
    assert text is not None
    assert 'value="http://localhost:8000/v1"' in html
    assert f"export OPENAI_BASE_URL=http://localhost:8000/v1\nexport OPENAI_API_KEY={text[1]}</textarea>" in html
    key = ApiKey.objects.get()
    assert (key.scopes, key.only_models) == (["passthrough"], ["gpt-5.5", "qwen3", "<b>"])
    assert (key.requests_a_minute, key.requests_a_day, key.tokens_a_day) == (60, None, 2_000_000)

    listed = parsed(client.get(reverse("account")).content.decode()).text()
    assert "May use the site\u2019s models with any OpenAI client." in listed
    assert "Only gpt-5.5 , qwen3 , <b> ." in listed
    assert "At most 60 requests a minute, 2,000,000 tokens a day." in listed
    assert "OPENAI_BASE_URL" not in listed


@pytest.mark.parametrize("days", ["", "30", "90", "365"])
def test_a_key_lasts_as_long_as_was_chosen(mara: User, days: str) -> None:
    signed_in(mara).post(reverse("make-key"), {"key-name": "x", "key-scopes": ["read"], "key-days": days})
    key = ApiKey.objects.get()
    assert (key.expiry is None) == (days == "")
    assert key.scopes == ["read"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"key-name": " "}, "id_key-name"),
        ({"key-name": "\u202e" * 101}, "id_key-name"),
        ({"key-scopes": ["admin"]}, "scopes"),
        ({"key-scopes": []}, "scopes"),
        ({"key-days": "7"}, "id_key-days"),
        ({"key-scopes": ["passthrough"], "key-only_models": "m" * 201}, "id_key-only_models"),
        ({"key-scopes": ["passthrough"], "key-tokens_a_day": "0"}, "id_key-tokens_a_day"),
        ({"key-scopes": ["passthrough"], "key-requests_a_day": "many"}, "id_key-requests_a_day"),
        ({"key-requests_a_minute": "60"}, "id_key-requests_a_minute"),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(mara: User, wrong: dict[str, Any], field: str) -> None:
    """The reason stands at the field, and nowhere else."""
    sent = {"key-name": "x", "key-scopes": ["read"], "key-days": "30", **wrong}
    page = signed_in(mara).post(reverse("make-key"), sent)
    assert page.status_code == 400
    assert re.findall(r'class="err" id="(\S+)_error"', page.content.decode()) == [field]
    assert not ApiKey.objects.exists()


def test_a_key_too_many_is_refused_in_words(mara: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "KEYS_MOST", 1)
    client = signed_in(mara)
    sent = {"key-name": "x", "key-scopes": ["read"], "key-days": "30"}
    pages = [client.post(reverse("make-key"), sent) for _ in range(2)]
    assert [page.status_code for page in pages] == [201, 400]
    assert "Revoke one that you no longer need first" in pages[1].content.decode()


def test_a_key_is_revoked_by_its_owner_alone(mara: User, bob: User) -> None:
    key, text = make_key(mara, "Nightly", ["chat"])
    address = reverse("revoke-key", args=[key.pk])
    assert signed_in(bob).post(address).status_code == 404
    assert signed_in(mara).get(address).status_code == 405
    assert key_from_header(f"Bearer {text}")
    assert signed_in(mara).post(address).status_code == 302
    assert key_from_header(f"Bearer {text}") is None


def test_signing_out_everywhere_ends_all_other_sessions(mara: User, bob: User) -> None:
    """A copied session key becomes useless: this session continues under a new key."""
    here, phone, office, bobs = signed_in(mara), signed_in(mara), signed_in(mara), signed_in(bob)
    copied = Client()
    copied.cookies["sessionid"] = here.cookies["sessionid"].value
    assert is_in(copied)
    answer = here.post(reverse("sign-out-everywhere"), follow=True)
    assert "Signed out in 2 other places." in answer.content.decode()
    assert [is_in(each) for each in (here, phone, office, bobs, copied)] == [True, False, False, True, False]
    assert here.get(reverse("sign-out-everywhere")).status_code == 405


def test_a_changed_password_ends_all_other_sessions(mara: User) -> None:
    """C22."""
    here, phone = signed_in(mara), signed_in(mara)
    new = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}
    assert here.post(reverse("password_change"), {**new, "old_password": "guess"}).status_code == 200
    assert is_in(phone)
    assert here.post(reverse("password_change"), new).status_code == 302
    assert is_in(here)
    assert not is_in(phone)
    assert Session.objects.count() == 1  # sockets look there
    mara.refresh_from_db()
    assert mara.check_password(NEW)
    [letter] = letters(1)
    assert letter.subject == "Your password was changed"


@pytest.mark.parametrize("weak", ["12345678", "password", "maranovak", "short"])
def test_a_weak_password_is_refused(mara: User, weak: str) -> None:
    new = {"old_password": PASSWORD, "new_password1": weak, "new_password2": weak}
    assert signed_in(mara).post(reverse("password_change"), new).status_code == 200
    mara.refresh_from_db()
    assert mara.check_password(PASSWORD)


def test_the_form_for_a_new_password_says_what_it_does_not_end(mara: User) -> None:
    """Programs go on; whoever fears that somebody has a key is led to where it is revoked."""
    page = signed_in(mara).get(reverse("password_change")).content.decode()
    assert "Your API keys keep working" in page
    assert f'href="{reverse("account")}#keys"' in page


def test_a_password_is_reset_by_mail(mara: User) -> None:
    there = signed_in(mara)
    for _ in range(5):
        Client().post(reverse("login"), {"username": "mara", "password": "forgotten"})
    answer = Client().post(reverse("password_reset"), {"email": "Mara@example.org"}, follow=True)
    assert "If an account has this address, a link has been sent to it." in answer.content.decode()
    [letter] = letters(1)
    link = re.search(r"https://agents\.example(/password/\S+)", letter.body)
    assert link is not None

    client = Client()
    form = client.get(link[1], follow=True)
    assert "For mara." in form.content.decode()
    assert "Your API keys keep working" in form.content.decode()
    done = client.post(form.redirect_chain[-1][0], {"new_password1": NEW, "new_password2": NEW})
    assert done.status_code == 302
    assert not is_in(there)
    assert Client().post(reverse("login"), {"username": "mara", "password": NEW}).status_code == 302  # no longer locked
    assert "This link no longer works" in Client().get(link[1], follow=True).content.decode()  # it was used
    assert [each.subject for each in letters(2)] == ["Reset your password", "Your password was changed"]


def test_a_link_expires_after_an_hour(mara: User, monkeypatch: pytest.MonkeyPatch) -> None:
    Client().post(reverse("password_reset"), {"email": mara.email})
    link = re.search(r"https://agents\.example(/password/\S+)", letters(1)[0].body)
    assert link is not None
    generator = "django.contrib.auth.tokens.PasswordResetTokenGenerator._now"
    later = timezone.now().replace(tzinfo=None) + timedelta(minutes=61)
    monkeypatch.setattr(generator, lambda self: later)
    assert "This link no longer works" in Client().get(link[1], follow=True).content.decode()


def test_the_page_does_not_tell_whether_somebody_has_an_address(mara: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a second request right after the first, which sends nothing more."""
    sent: list[Any] = []
    monkeypatch.setattr(forms, "send_soon", sent.append)
    known, again, unknown = (
        Client().post(reverse("password_reset"), {"email": email}, follow=True)
        for email in (mara.email, mara.email, "nobody@example.org")
    )
    assert known.content == again.content == unknown.content
    assert len(sent) == 1


def test_a_site_without_a_mail_server_says_so(mara: User, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    for page in (
        Client().get(reverse("password_reset")),
        Client().post(reverse("password_reset"), {"email": mara.email}),
    ):
        assert "This site has no mail server" in page.content.decode()
        assert "<form" not in page.content.decode()
    assert "This site has no mail server" in signed_in(mara).get(reverse("account")).content.decode()


def test_sessions_that_expired_go_when_somebody_signs_in(mara: User) -> None:
    signed_in(mara)
    Session.objects.update(expire_date=timezone.now() - timedelta(days=1))
    Client().post(reverse("login"), {"username": "mara", "password": PASSWORD})
    assert Session.objects.count() == 1
