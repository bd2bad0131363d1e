"""Presence: which users have a page open, by the database's clock."""

import pytest
from django.contrib.auth.models import User

from conversations.accounts.presence import record_presence, was_ever_present
from conversations.models import Account

pytestmark = pytest.mark.django_db


def test_a_page_in_view_is_recorded(ann: User, bob: User) -> None:
    assert not was_ever_present(ann.pk)  # who has no account row yet
    record_presence(ann.pk)
    assert was_ever_present(ann.pk)
    assert not was_ever_present(bob.pk)


def test_it_changes_nothing_else_of_an_account(ann: User) -> None:
    Account.objects.create(user=ann, zone="Europe/Paris")
    record_presence(ann.pk)
    assert Account.objects.get(user=ann).zone == "Europe/Paris"
