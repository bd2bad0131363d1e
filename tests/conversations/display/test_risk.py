"""What the badge of a call says and its colour, wherever the call is shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.urls import reverse

from agents import SANDBOXED
from conversations.models import Output
from conversations.notifications.mail import Notifier
from tests.conversations.support import Story, asking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("letters")]

INSIDE = SANDBOXED
OUTSIDE = "Not sandboxed: the command runs with the rights of the worker."
GREY, RED = "risk-write", "risk-high"
CALLS = {
    "a command in the sandbox": ("high", [INSIDE], ("Runs code", GREY)),
    "a command outside": ("high", [OUTSIDE], ("Not sandboxed", RED)),
    "a fact that begins with what a model wrote": ("high", [f"{INSIDE} is the subject."], ("High risk", RED)),
    "both at once": ("high", [INSIDE, OUTSIDE], ("Not sandboxed", RED)),
    "a high risk of which nothing is known": ("high", ["Pays 200 EUR."], ("High risk", RED)),
    "what writes": ("write", [], ("Writes", GREY)),
    "what leaves the site": ("exfiltration", [], ("Leaves the site", RED)),
    "what destroys": ("destructive", [], ("Destructive", RED)),
    "what destroys in the sandbox": ("destructive", [INSIDE], ("Destructive", RED)),
}
"""The risk of a tool and the facts of a call, with the words and the colour of its badge."""


PAGES: list[Callable[[Output], str]] = [
    lambda output: output.conversation.get_absolute_url(),
    lambda output: reverse("sheet", args=[output.conversation_id]),
    lambda output: reverse("admin:index"),
    lambda output: reverse("admin:conversations_approval_changelist"),
    lambda output: reverse("admin:conversations_approval_change", args=[output.pk]),
    lambda output: f"{reverse('admin:conversations_approval_together')}?ids={output.pk}",
]


@pytest.mark.parametrize(("risk", "facts", "badge"), CALLS.values(), ids=CALLS)
def test_a_badge_is_red_for_what_is_not_sandboxed_leaves_the_site_or_destroys(
    client: Client, chief: User, risk: str, facts: list[str], badge: tuple[str, str]
) -> None:
    words, colour = badge
    _, output = asking(chief, risk=risk, facts=facts)
    for page in PAGES:
        assert f'<span class="badge {colour}">{words}</span>' in client.get(page(output)).text, page(output)
    assert Notifier().send_due() == 1
    assert f"Run a command ({words.lower()})" in mail.outbox[0].body


def test_a_call_that_only_reads_has_no_badge(client: Client, chief: User) -> None:
    _, output = asking(chief, risk="read")
    for page in PAGES:
        assert '<span class="badge risk' not in client.get(page(output)).text


def test_those_of_one_risk_are_named_by_their_badges(client: Client, chief: User) -> None:
    story = Story(chief)
    story.asks_model()
    calls = [story.call("shell.run", command=f"echo {n}") for n in range(3)]
    story.answers(*calls)
    outputs = [
        story.gate(calls[0], facts=[INSIDE]),
        story.gate(calls[1], facts=["Pays 200 EUR."]),
        story.gate(calls[2], risk="write"),
    ]
    story.pauses()
    page = reverse("sheet", args=[story.conversation.pk])
    assert "Select 2: runs code, high risk" in client.get(page).text
    approved = {f"decision_{output.pk}": "approve" for output in outputs}
    digests = {f"digest_{output.pk}": output.digest for output in outputs}
    refused = client.post(page, {"id": [output.pk for output in outputs], **approved, **digests})
    assert "different risks (runs code, high risk, writes)" in refused.text


def test_the_list_of_approvals_is_filtered_by_the_risk_of_the_tool(client: Client, chief: User) -> None:
    asking(chief, "make", facts=[INSIDE])
    asking(chief, "echo hello", risk="write")
    page = reverse("admin:conversations_approval_changelist")
    assert "High risk, or runs code" in client.get(page).text
    found = client.get(page, {"risk": "high"}).text
    assert "make" in found
    assert "echo hello" not in found
