"""Who looks at a page now, by the database's clock."""

import pytest
from django.contrib.auth.models import User

from conversations.accounts.presence import is_looking, looked
from conversations.database.sql import database_time
from conversations.models import Account

pytestmark = pytest.mark.django_db


def test_whoever_looked_is_looking(ann: User, bob: User) -> None:
    assert not is_looking(ann.pk)  # who has no account row yet
    looked(ann.pk)
    assert is_looking(ann.pk)
    assert not is_looking(bob.pk)


def test_it_passes(ann: User) -> None:
    looked(ann.pk)
    Account.objects.filter(user=ann).update(looked_at=database_time() - 31)
    assert not is_looking(ann.pk)
    assert is_looking(ann.pk, within_seconds=60)
    looked(ann.pk)
    assert is_looking(ann.pk)


def test_it_changes_nothing_else_of_an_account(ann: User) -> None:
    Account.objects.create(user=ann, mail=False)
    looked(ann.pk)
    assert not Account.objects.get(user=ann).mail
