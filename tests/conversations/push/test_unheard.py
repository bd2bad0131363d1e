"""A commit whose notification is lost (CP25): on PostgreSQL everything is read periodically."""

import pytest
from django.contrib.auth.models import User

from conversations.prompts.start import start_conversation, start_prompt
from conversations.push import watch
from conversations.push.watch import ChangeNotice, open_watch
from tests.conversations.recorded import meddle


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_commit_that_nobody_is_told_of_is_found(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP25: within ALL_SECONDS, which are five."""
    assert watch.ALL_SECONDS <= 5
    monkeypatch.setattr(watch, "ALL_SECONDS", 0.5)
    prompt = start_prompt(start_conversation(ann), ann, "Go.")
    opened = open_watch()
    try:
        assert opened.wait(5) == ChangeNotice(everything=True)
        meddle("UPDATE conversations_conversation SET updated_at = updated_at WHERE id = %s", [prompt.conversation_id])
        assert opened.wait(5) == ChangeNotice(everything=True)
    finally:
        opened.close()
