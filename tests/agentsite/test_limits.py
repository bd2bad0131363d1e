"""How much an address takes, by its name."""

import pytest

from agentsite import limits
from agentsite.refusals import ORDINARY_MOST
from conversations.accounts.keys import make_key
from tests.conversations.listening import aside, cookie
from tests.conversations.support import person

MB = 1024 * 1024


@pytest.mark.parametrize(
    ("method", "target", "most"),
    [
        ("POST", "/c/", 202 * MB),
        ("POST", "/c/7/prompts/?x=/login/", 202 * MB),
        ("POST", "/c%2f", 202 * MB),  # Django reads it so, too
        ("POST", "/api/conversations/7/prompts/", 202 * MB),
        ("POST", "/v1/chat/completions", 20 * MB),
        ("POST", "/v1/chat%2fcompletions?x=1", 20 * MB),
        ("GET", "/v1/chat/completions", ORDINARY_MOST),
        ("POST", "/v1/chat/completions/", ORDINARY_MOST),
        ("POST", "/v1/models", ORDINARY_MOST),
        ("PUT", "/c/", ORDINARY_MOST),
        ("post", "/c/", ORDINARY_MOST),
        ("POST", "/c", ORDINARY_MOST),
        ("POST", "/login/?next=/c/", ORDINARY_MOST),
        ("POST", "/api/", ORDINARY_MOST),
        ("POST", "/nowhere", ORDINARY_MOST),
        ("POST", "http://localhost/c/", ORDINARY_MOST),
        ("POST", "/c/\xff", ORDINARY_MOST),
        ("POST", "", ORDINARY_MOST),
    ],
)
def test_only_where_files_are_sent_it_is_more(method: str, target: str, most: int) -> None:
    assert limits.SiteLimits().most(method.encode(), target.encode("latin-1")) == most


def test_a_row_may_be_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any method; names in the admin have its prefix."""
    monkeypatch.setattr(limits, "table", lambda: {"login": 1000, "admin:login": 2000})
    site = limits.SiteLimits()
    assert [site.most(method, b"/login/") for method in (b"POST", b"GET")] == [1000, 1000]
    assert site.most(b"POST", b"/admin/login/") == 2000
    assert site.most(b"POST", b"/c/") == ORDINARY_MOST


@pytest.mark.django_db(transaction=True)
async def test_whoever_has_a_key_is_known_whatever_it_may_do() -> None:
    """A key for models alone sends large bodies, too. Beside a key, good or not, a session does not count."""
    ann = await aside(person, "ann")
    _, text = await aside(make_key, ann, "models", ["passthrough"])
    site, session = limits.SiteLimits(), f"sessionid={await aside(cookie, ann)}"
    assert await site.person(b"/c/", f"Bearer {text}", "") == ann.pk
    assert await site.person(b"/c/", f"Bearer {text[:-1]}", session) is None
    assert await site.person(b"/c/", "", session) == ann.pk
    assert await site.person(b"/c/", "", "") is None


@pytest.mark.django_db(transaction=True)
async def test_only_a_key_for_models_sends_them_large_bodies() -> None:
    """Nobody's session, and no key for other things."""
    ann = await aside(person, "ann")
    _, models = await aside(make_key, ann, "models", ["passthrough"])
    _, chats = await aside(make_key, ann, "chats", ["chat"])
    site, session = limits.SiteLimits(), f"sessionid={await aside(cookie, ann)}"
    for target in (b"/v1/embeddings", b"/v1%2fembeddings?x"):
        assert site.waits(target)
        assert await site.person(target, f"Bearer {models}", "") == ann.pk
        assert await site.person(target, f"Bearer {chats}", "") is None
        assert await site.person(target, "", session) is None
    assert not site.waits(b"/c/")
