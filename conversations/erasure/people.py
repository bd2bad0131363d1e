"""When a person leaves for good: what they said and who they were goes, what they decided for others stays, unnamed."""

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

from conversations.accounts.sessions import end_sessions
from conversations.erasure.conversations import TurnRuns, erase
from conversations.ledger.claims import is_held
from conversations.models import Account, ApiKey, Conversation, Erasure, Notice, Prompt, Quota, Redaction, State

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class LastAdministrator(Exception):
    """This is the last active superuser, without whom nobody could run the site: make another one first."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def erase_user(user: User, by: User, reason: str = "") -> int:
    """Erase all conversations of this person and what the site knows of them; returns how many conversations it were.

    They are signed out and deactivated first, so that they start nothing more, not even by a request that came before
    and is still on its way. What stays is an inactive user without
    a name, `erased-<id>` or one like it, to whom decisions in others' conversations and the numbers of what was used
    still belong, and a trace of each conversation (`Erasure`). Where it is broken off half-way, doing it again goes on.
    Raises LastAdministrator; TurnRuns while a worker holds a turn of theirs: stop it first.
    """
    _shut_out(user)
    erased = 0
    while not _forgotten(user):
        for conversation in list(Conversation.objects.filter(owner=user).order_by("pk")):
            with suppress(Conversation.DoesNotExist):  # they deleted it themselves at the same moment
                erase(conversation, by, reason)
                erased += 1
    return erased


def erased_people() -> list[User]:
    """Those who were erased."""
    gone = get_user_model().objects.filter(is_active=False, username__startswith="erased-").order_by("pk")
    return [user for user in gone if re.fullmatch(rf"erased-{user.pk}(-\d+)?", user.get_username())]


def _shut_out(user: User) -> None:
    """Let them in no more. Raises LastAdministrator, TurnRuns."""
    with transaction.atomic():
        chiefs = get_user_model().objects.select_for_update().filter(is_superuser=True, is_active=True)
        others = [chief for chief in chiefs.order_by("pk") if chief.pk != user.pk]  # locked: two may leave at once
        if user.is_superuser and user.is_active and not others:
            raise LastAdministrator
        running = Prompt.objects.filter(conversation__owner=user, state=State.RUNNING)
        if any(is_held(prompt) for prompt in running.values_list("pk", flat=True)):
            raise TurnRuns
        user.is_active = False
        user.save(update_fields=["is_active"])
        ApiKey.objects.filter(user=user).delete()
        end_sessions(user)


def _forgotten(user: User) -> bool:
    """Take away who they were; False, with nothing done, where a conversation of theirs is left."""
    with transaction.atomic():
        get_user_model().objects.select_for_update(no_key=True).get(pk=user.pk)  # nothing of theirs begins meanwhile
        if Conversation.objects.filter(owner=user).exists():
            return False
        _forget(user)
    return True


def _forget(user: User) -> None:
    """Take away who they were, wherever that stands."""
    name, gone = user.get_username(), _free_name(user)
    Erasure.objects.filter(erased_by=name).update(erased_by=gone)
    Redaction.objects.filter(redacted_by=name).update(redacted_by=gone)
    for kind in (Account, Quota, Notice):
        kind._default_manager.filter(user=user).delete()
    for tried in (AccessAttempt, AccessFailureLog):
        tried.objects.filter(username=name).delete()
    _forget_in_history(user, gone)
    user.groups.clear()
    user.user_permissions.clear()
    user.username, user.first_name, user.last_name, user.email, user.last_login = gone, "", "", "", None
    user.is_staff = user.is_superuser = False
    user.set_unusable_password()
    user.save()


def _forget_in_history(user: User, gone: str) -> None:
    """In what the admin says was done: to their row, and to keys that bear a name of theirs, which it tells no more."""
    kind = ContentType.objects.get_for_model
    theirs = LogEntry.objects.filter(content_type=kind(user), object_id=str(user.pk))
    theirs.update(object_repr=gone, change_message="")  # which quotes rows that were changed with it
    keys = LogEntry.objects.filter(content_type=kind(ApiKey))  # revoked ones: nobody knows any more whose they were
    for name in filter(None, (user.get_username(), user.first_name, user.last_name, user.email)):
        keys.filter(object_repr__icontains=name).update(object_repr=F("object_id"))


def _free_name(user: User) -> str:
    """What they are called from now on, and nobody else: people choose their names."""
    names = (f"erased-{user.pk}" + (f"-{number}" if number > 1 else "") for number in count(1))
    others = get_user_model().objects.exclude(pk=user.pk)
    return next(name for name in names if not others.filter(username=name).exists())
