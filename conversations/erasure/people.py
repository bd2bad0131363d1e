"""Erasing a person: their conversations and personal data go; their decisions for others stay, without a name."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from axes.models import AccessAttempt, AccessFailureLog
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import F

from agents.engine.ledger import canonical
from agents.models import Memory, MemoryStanding
from agents.plugins.memory.keeping import person_goes
from conversations.accounts.sessions import end_sessions
from conversations.erasure.conversations import TurnRuns, erase
from conversations.files import pending
from conversations.ledger.claims import any_held
from conversations.models import (
    Account,
    ApiKey,
    Conversation,
    Delivery,
    Erasure,
    Notice,
    NoticeChoice,
    PassthroughUsage,
    Prompt,
    Quota,
    Redaction,
    Trigger,
    Webhook,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import Model

_PERSONAL: list[type[Model]] = [Account, Quota, Notice, NoticeChoice, Webhook, Memory, MemoryStanding]
"""Tables whose rows of a `user` go with that person."""


def goes_with_person(model: type[Model]) -> None:
    """Let the rows of this table go with their `user`. Call it from `AppConfig.ready()`."""
    if model not in _PERSONAL:
        _PERSONAL.append(model)


class LastAdministrator(Exception):
    """This is the last active superuser, and the site needs one: make another one first."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def erase_user(user: User, by: User, reason: str = "") -> int:
    """Erase all of a person's conversations and personal data; return how many conversations were erased.

    They are signed out and deactivated first, so that they start nothing more, not even with a request that is already
    being handled. What stays is an inactive user called `erased-<id>` or similar, to whom decisions in others'
    conversations and usage figures still belong, and a trace of each conversation (`Erasure`). If it is interrupted,
    repeating it finishes the work.
    Raises LastAdministrator, and TurnRuns while a worker holds one of their turns: stop it first.
    """
    _deactivate(user)
    erased = 0
    while not _anonymize_if_empty(user):
        for conversation in list(Conversation.objects.filter(owner=user).order_by("pk")):
            with suppress(Conversation.DoesNotExist):  # they deleted it themselves at the same moment
                erase(conversation, by, reason)
                erased += 1
    return erased


def erased_people() -> list[User]:
    """Return the users that remain of erased people."""
    gone = get_user_model().objects.filter(is_active=False, username__startswith="erased-").order_by("pk")
    return [user for user in gone if re.fullmatch(rf"erased-{user.pk}(-\d+)?", user.get_username())]


def _deactivate(user: User) -> None:
    """Deactivate the account, and end its sessions and API keys. Raises LastAdministrator, TurnRuns."""
    with transaction.atomic():
        chiefs = get_user_model().objects.select_for_update().filter(is_superuser=True, is_active=True)
        others = [chief for chief in chiefs.order_by("pk") if chief.pk != user.pk]  # locked: two may leave at once
        if user.is_superuser and user.is_active and not others:
            raise LastAdministrator
        if any_held(Prompt.objects.filter(conversation__owner=user)):
            raise TurnRuns
        user.is_active = False
        user.save(update_fields=["is_active"])
        ApiKey.objects.filter(user=user).delete()
        end_sessions(user)


def _anonymize_if_empty(user: User) -> bool:
    """Anonymize the user. Returns False, having done nothing, if they still own a conversation."""
    with transaction.atomic():
        get_user_model().objects.select_for_update(no_key=True).get(pk=user.pk)  # they start nothing meanwhile
        if Conversation.objects.filter(owner=user).exists():
            return False
        _anonymize(user)
    return True


def _anonymize(user: User) -> None:
    """Remove the person's name and personal data wherever they are stored."""
    name, gone = user.get_username(), _free_name(user)
    Erasure.objects.filter(erased_by=name).update(erased_by=gone)
    Redaction.objects.filter(redacted_by=name).update(redacted_by=gone)
    person_goes(user)
    for kind in _PERSONAL:
        kind._default_manager.filter(user=user).delete()
    Delivery.objects.filter(body__contains=canonical(name)).delete()  # of what they decided for others
    PassthroughUsage.objects.filter(user=user).update(key_name="")
    for tried in (AccessAttempt, AccessFailureLog):
        tried.objects.filter(username=name).delete()
    pending.discard_all(user)
    Trigger.objects.filter(owner=user).delete()
    _anonymize_history(user, gone)
    user.groups.clear()
    user.user_permissions.clear()
    user.username, user.first_name, user.last_name, user.email, user.last_login = gone, "", "", "", None
    user.is_staff = user.is_superuser = False
    user.set_unusable_password()
    user.save()


def _anonymize_history(user: User, gone: str) -> None:
    """Remove their name from the admin's history: entries about their row, and about keys that contain their name."""
    kind = ContentType.objects.get_for_model
    theirs = LogEntry.objects.filter(content_type=kind(user), object_id=str(user.pk))
    theirs.update(object_repr=gone, change_message="")  # the message quotes rows that were changed with it
    keys = LogEntry.objects.filter(content_type=kind(ApiKey))  # all: whose a revoked key was is no longer known
    for name in filter(None, (user.get_username(), user.first_name, user.last_name, user.email)):
        keys.filter(object_repr__icontains=name).update(object_repr=F("object_id"))


def _free_name(user: User) -> str:
    """Return a username for the erased person that nobody else has: people choose their own names."""
    names = (f"erased-{user.pk}" + (f"-{number}" if number > 1 else "") for number in count(1))
    others = get_user_model().objects.exclude(pk=user.pk)
    return next(name for name in names if not others.filter(username=name).exists())
