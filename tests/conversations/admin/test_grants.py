"""Grants in the admin: listed in words, and revoked by who may."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from conversations.models import Grant
from tests.conversations.approvals.test_grants import Writing, below, deciders, notes, remembered, world  # noqa: F401
from tests.conversations.recorded import Site

pytestmark = pytest.mark.django_db

LIST = "/admin/conversations/grant/"


def client(user: User, *may: str) -> Client:
    user.is_staff = True
    user.save()
    user.user_permissions.add(*Permission.objects.filter(codename__in=may))
    signed_in = Client()
    signed_in.force_login(user)
    return signed_in


def test_staff_see_grants_in_words_and_revoke_them(ann: User, kim: User, site: Site, world: Writing) -> None:  # noqa: F811
    grant = remembered(site, ann, below())
    chosen = {"action": "revoke", "_selected_action": [grant.pk]}
    sees = client(kim, "view_grant")
    words = "without asking ann, if path starts with “reports/” and text may be anything"
    assert words in sees.get(LIST).content.decode()
    assert reverse("admin:conversations_grant_changelist") == LIST
    sees.post(LIST, chosen)
    assert Grant.objects.get().revoked_at is None, "who may only see them revokes none"
    may = client(kim, "change_grant")
    assert "Revoked 1 grant." in may.post(LIST, chosen, follow=True).content.decode()
    assert deciders(site.runs(ann, *notes("reports/b"))) == []
