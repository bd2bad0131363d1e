"""Storage: how many bytes a person's files take, and how many more may come.

Counted are the files of their conversations, given or made, those they uploaded for runs that have not started yet,
what came with webhooks and is kept for their triggers, and the workspaces, as they were last measured.
"""

from __future__ import annotations

from django.conf import settings
from django.db.models import Sum

from agents.engine.interfaces.services import Space
from agents.plugins.files.usage import readable
from conversations.models import Conversation, File, Payload, PendingFile, Quota
from conversations.usage import quotas

MB = 1024 * 1024


class OverStorage(Exception):
    """This person has no space left for what they send. The message says so, and what to do."""


def used(user_id: int, but: int = 0) -> int:
    """Return the bytes that a person's files take. `but`: a conversation whose workspace is left out."""
    contents = File.objects.filter(conversation__owner=user_id).values("content", "size").distinct()
    workspaces = Conversation.objects.filter(owner=user_id, workspace_bytes__gt=0).exclude(pk=but)
    pending = PendingFile.objects.filter(owner=user_id)
    payloads = Payload.objects.filter(firing__trigger__owner=user_id)
    in_files = sum(each.aggregate(sum=Sum("size"))["sum"] or 0 for each in (contents, pending, payloads))
    return in_files + (workspaces.aggregate(sum=Sum("workspace_bytes"))["sum"] or 0)


def limit(user_id: int) -> int:
    """Return the bytes that a person's files may take; 0 means no limit."""
    return bytes_of(quotas.limits(user_id))


def bytes_of(limits: Quota) -> int:
    """Return the bytes that files may take by these limits; 0 means no limit."""
    return (limits.storage_mb or 0) * MB


def workspace_space(conversation: int, user_id: int) -> Space:
    """Return what the workspace of this person's conversation may hold now."""
    most = limit(user_id)
    return space_beside(used(user_id, but=conversation) if most else 0, most)


def space_beside(others: int, most: int) -> Space:
    """Return what a workspace may hold if its owner's other files take so many bytes, of `most`; 0 means no limit."""
    left = max(most - others, 0) if most else None
    return Space(settings.AGENTSITE_WORKSPACE_MB * MB, settings.AGENTSITE_WORKSPACE_FILES, left)


def check(user_id: int, more: int) -> None:
    """Raise OverStorage if this person's files may not take so many bytes more."""
    most = limit(user_id)
    if most and (now := used(user_id)) + more > most:
        raise OverStorage(
            f"your files take {readable(now)} of the {readable(most)} that you may use. "
            "Delete conversations that you no longer need, or ask an administrator for more"
        )


def keep_measure(conversation: int, held: int) -> None:
    """Keep how many bytes the workspace of this conversation holds."""
    Conversation.objects.filter(pk=conversation).update(workspace_bytes=held)
