"""Presence: which users have a page open, by the database's clock."""

import pytest
from django.contrib.auth.models import User

from conversations.accounts.presence import is_present, record_presence
from conversations.database.sql import database_time
from conversations.models import Account

pytestmark = pytest.mark.django_db


def test_a_page_in_view_makes_its_user_present(ann: User, bob: User) -> None:
    assert not is_present(ann.pk)  # who has no account row yet
    record_presence(ann.pk)
    assert is_present(ann.pk)
    assert not is_present(bob.pk)


def test_it_passes(ann: User) -> None:
    record_presence(ann.pk)
    Account.objects.filter(user=ann).update(looked_at=database_time() - 31)
    assert not is_present(ann.pk)
    assert is_present(ann.pk, within_seconds=60)
    record_presence(ann.pk)
    assert is_present(ann.pk)


def test_it_changes_nothing_else_of_an_account(ann: User) -> None:
    Account.objects.create(user=ann, mail=False)
    record_presence(ann.pk)
    assert not Account.objects.get(user=ann).mail
