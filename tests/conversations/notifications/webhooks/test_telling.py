"""Which webhooks are told of what, each exactly once, and what is told goes with what it is about."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.accounts.presence import record_presence
from conversations.approvals.decisions import decide
from conversations.backup.after_restore import make_safe
from conversations.erasure.conversations import erase
from conversations.erasure.people import erase_user
from conversations.erasure.steps import redact
from conversations.models import ConversationKind, Delivery, Event, NoticeKind, Output, Webhook
from conversations.models.output import UNTOLD
from conversations.notifications.choices import choose
from conversations.notifications.events import notify_ended
from conversations.notifications.kinds import Ways
from conversations.notifications.webhooks import managing
from conversations.notifications.webhooks.telling import tell_of_gates
from conversations.prompts.start import cancel_prompt, start_conversation
from tests.conversations.support import Story, asking, person

pytestmark = pytest.mark.django_db
URL = "https://203.0.113.7/hook"
ALL = [event.value for event in Event]


def told(**of: Any) -> list[tuple[str, int | None]]:
    """Return what was recorded: the event, and whose webhook it is for."""
    rows = Delivery.objects.filter(**of).order_by("pk")
    return list(rows.values_list("event", "webhook__user"))


def said(event: str) -> dict[str, Any]:
    body = json.loads(Delivery.objects.get(event=event, webhook__user=None).body)
    assert body["type"] == event
    assert body["timestamp"].endswith("+00:00")
    data: dict[str, Any] = body["data"]
    return data


def may_have_one(*people: User) -> None:
    for each in people:
        each.user_permissions.add(Permission.objects.get(codename="have_webhook"))
        managing.make(URL, user=User.objects.get(pk=each.pk))


def test_the_site_is_told_of_every_end_once_also_of_what_its_owner_saw(ann: User) -> None:
    managing.make(URL, events=ALL)
    record_presence(ann.pk)
    seen = Story(ann).ends()
    stopped = Story(ann)
    cancel_prompt(stopped.prompt.pk, ann)
    Story(ann, conversation=start_conversation(ann, kind=ConversationKind.HIDDEN)).ends()
    assert [notify_ended(), notify_ended()] == [3, 0]
    assert told() == [("turn.ended", None)] * 2
    data = json.loads(Delivery.objects.get(prompt=seen).body)["data"]
    assert data == {
        "prompt": seen.pk,
        "conversation": seen.conversation_id,
        "title": str(seen.conversation),
        "owner": "ann",
        "state": "completed",
        "stop_reason": "text",
        "link": f"http://127.0.0.1:8000{seen.conversation.get_absolute_url()}#t-{seen.pk}",
    }


def test_people_are_told_by_their_webhook_of_what_they_chose(ann: User, bob: User) -> None:
    may_have_one(ann, bob)
    Story(ann).ends()
    notify_ended()
    assert told() == [("turn.ended", ann.pk)]
    choose(ann, {NoticeKind.ENDED: Ways(page=True, mail=True, hook=False)}, None)
    Story(ann).ends()
    Story(ann).ends("failed", "model_error")
    notify_ended()
    assert told() == [("turn.ended", ann.pk)] * 2


def test_who_lost_the_permission_is_told_nothing(ann: User) -> None:
    may_have_one(ann)
    ann.user_permissions.clear()
    Story(ann).ends()
    notify_ended()
    assert told() == []


def test_an_approval_is_told_when_it_is_requested_and_when_it_is_decided(ann: User, bob: User, kim: User) -> None:
    _, before = asking(ann)
    managing.make(URL, events=ALL)
    may_have_one(ann, bob, kim)
    _, gate = asking(ann, "curl -H 'Authorization: Bearer s3cret' example.org")
    assert [tell_of_gates(), tell_of_gates()] == [2, 0]
    assert told() == [("approval.requested", None), ("approval.requested", ann.pk)]
    data = said("approval.requested")
    assert (data["approval"], data["tool"], data["owner"]) == (gate.pk, "shell.run", "ann")
    assert data["link"] == f"http://127.0.0.1:8000/approvals/{gate.pk}/"
    assert "s3cret" not in Delivery.objects.first().body  # type: ignore[union-attr]
    for each in (before, gate):
        decide(each.pk, ann, "reject", digest=each.digest, via="page")
    assert [tell_of_gates(), tell_of_gates()] == [2, 0]
    assert told(event="approval.decided") == [("approval.decided", None), ("approval.decided", ann.pk)]
    assert (said("approval.decided")["decision"], said("approval.decided")["decided_by"]) == ("rejected", "ann")


def test_who_decides_for_others_is_told_of_what_the_owner_may_not_decide(bob: User, kim: User) -> None:
    owner = person("eve")
    owner.groups.clear()
    may_have_one(owner, bob, kim)
    asking(owner)
    tell_of_gates()
    assert told() == [("approval.requested", kim.pk)]


def test_what_was_decided_before_anybody_looked_is_told_whole(ann: User) -> None:
    managing.make(URL, events=ALL)
    _, gate = asking(ann)
    decide(gate.pk, ann, "reject", digest=gate.digest, via="page")
    tell_of_gates()
    assert told() == [("approval.requested", None), ("approval.decided", None)]


def test_without_a_webhook_a_round_is_one_look_into_an_empty_index(ann: User) -> None:
    asking(ann)
    tell_of_gates()
    with CaptureQueriesContext(connection) as queries:
        assert (tell_of_gates(), told()) == (0, [])
    assert len(queries) == 2  # the second is that of the test
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")  # the table is small
    assert "output_untold" in Output.objects.filter(UNTOLD).order_by("pk").explain()


def test_what_was_told_goes_with_its_conversation_and_with_whom_it_names(ann: User, kim: User, bob: User) -> None:
    managing.make(URL, events=ALL)
    may_have_one(kim)
    story, gate = asking(ann)
    decide(gate.pk, kim, "reject", digest=gate.digest, via="page")
    story.ends()
    other = Story(bob, "The launch code is 1234").ends()
    notify_ended()
    tell_of_gates()
    erase_user(kim, bob)
    assert not Webhook.objects.filter(user__isnull=False).exists()
    assert sorted(told()) == [("approval.requested", None), ("turn.ended", None), ("turn.ended", None)]
    redact(other.conversation, [1], bob, "A code.")
    assert sorted(told()) == [("approval.requested", None), ("turn.ended", None)]
    erase(story.conversation, ann)
    assert told() == []


def test_after_a_restore_nothing_is_sent_by_itself(ann: User) -> None:
    webhook, _ = managing.make(URL, events=ALL)
    Story(ann).ends()
    notify_ended()
    make_safe("1 May 2026, 10:00")
    webhook.refresh_from_db()
    assert (webhook.on, webhook.off_reason) == (False, "Restored from a backup of 1 May 2026, 10:00.")
    (delivery,) = Delivery.objects.all()
    assert (delivery.state, delivery.next_at) == ("failed", None)
    assert "It may have been sent after that." in delivery.error
