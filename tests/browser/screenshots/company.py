"""What the people of the company did: run by `manage.py shell` of their site, against its worker and its model."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import Group, Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import F
from django.utils import timezone

from agents.engine.execution.gates import ANOTHER
from agents.models import Blueprint
from conversations.approvals.decisions import decide
from conversations.files.uploads import read_uploads
from conversations.files.workspaces import folder_of
from conversations.models import Conversation, Draft, Output, Prompt
from conversations.prompts.start import cancel_prompt, start_conversation, start_prompt
from tests.agentsite.processes import wait_for
from tests.browser.conftest import PASSWORD
from tests.browser.screenshots import turns
from tests.browser.screenshots.runs import batch, runs

FILES = {
    turns.INVOICES: {
        "ledger.csv": "invoice,supplier,amount\n2025-0801,Ardea Logistics,2480.00\n2025-0847,Kerr Printing,1290.20\n",
        "export.py": "import bank\n\nWAIT = 10\n\n\ndef send(file):\n    bank.put(file, timeout=WAIT)\n",
    },
    turns.RETRY: {"export.py": f"import bank\n\nWAIT = 10\n\n\n{turns.SEND}\n\ndef close():\n    bank.close()\n"},
    turns.SHELVES: {"takings.csv": "month,harbour,station\n2025-01,18200,14900\n2025-02,17100,15600\n"},
    turns.BACKUP: {"backup.log": "02:00 start\n02:00 lock is held by prune\n02:38 lock\n02:49 end\n"},
    turns.NOTES: {"CHANGELOG.md": "# 4.2\n\n- Parcels over two shelves\n- Search by translator\n"},
}
"""What lies in the workspace when a conversation begins."""

ATTACHED = {
    turns.INVOICES: [SimpleUploadedFile("invoices_2025_q3.csv", b"invoice,supplier,amount\n" * 2600, "text/csv")],
    turns.CUSTOMERS: [
        SimpleUploadedFile("customers.json", b"[]\n", "application/json"),
        SimpleUploadedFile(
            "What the old shop says of its own export format.pdf", b"%PDF-1.7\n" * 9000, "application/pdf"
        ),
    ],
}
"""What came with a message."""

DONE = (
    (turns.BACKUP, "Why is the nightly backup slow?", 0.1),
    (turns.SHELVES, "How did the two shops sell?", 0.15),
    (turns.LICENCES, "Which licences do we ship?", 1),
    (turns.PRICES, "Prices of the three carriers", 1),
    ("Plan the holidays of the warehouse.", "Holiday plan for the warehouse", 3),
    ("What changed on the privacy page?", "Privacy page: what changed?", 8),
    ("VAT rates for the shop, by country.", "VAT rates for the shop, by country and by kind of book", 9),
)
"""Turns that came to their end: what was said, the title, and how many days ago."""


def fill() -> dict[str, int]:
    """Let the company work; where each conversation is, by name, and the batch."""
    mara = User.objects.get(username="mara")
    User.objects.filter(pk=mara.pk).update(first_name="Mara", last_name="Lindqvist", email="mara@harbour-books.example")
    jonas = User.objects.create_user("jonas", password=PASSWORD, first_name="Jonas", last_name="Weber", is_staff=True)
    may = ("decide_own_approval", "decide_approval")
    jonas.user_permissions.add(*Permission.objects.filter(codename__in=may))
    mara.refresh_from_db()
    blueprints(jonas)
    found = {}
    for said, title, days in DONE:
        found[said] = begun(mara, said, title, "completed", days)
    found["customers"] = begun(mara, turns.CUSTOMERS, "Import the old customers", "failed", 0.05)
    found["photos"] = begun(mara, turns.PHOTOS, "Rename the product photos", "waiting_for_approval", 0)
    decided(mara, found["photos"])
    found["zone"] = begun(mara, turns.ZONE, "Move the DNS zone to the new host", "waiting_for_approval", 0)
    interrupted(mara, found["zone"])
    found["stopped"] = begun(mara, turns.NOTES, "Summary of the support mail", "running", 0.02)
    stopped(mara, found["stopped"])
    found["budget"] = begun(mara, turns.SHELF_PLAN, "Plan the shelves of the new shop", "failed", 0.03)
    found["expired"] = begun(mara, turns.REFUND, "Pay back order 88-1402", "waiting_for_approval", 0)
    expired(found["expired"])
    found["four-eyes"] = begun(mara, turns.PAYROLL, "Pay the wages of October", "waiting_for_approval", 0)
    Output.objects.filter(conversation=found["four-eyes"], gate="pending").update(who=ANOTHER)
    found["staging"] = begun(jonas, turns.STAGING, "Restore staging from Tuesday", "waiting_for_approval", 0)
    edited(found["staging"])
    found["retry"] = begun(mara, turns.RETRY, "Never send a file twice", "waiting_for_approval", 0)
    found["export"] = begun(mara, turns.EXPORT, "The export of September", "waiting_for_approval", 0)
    found["invoices"] = begun(mara, turns.INVOICES, "Q3 invoices: find the duplicates", "waiting_for_approval", 0)
    found["policy"] = restocking(mara)
    found["policy-done"] = restocking(mara)
    approved(mara, found["policy-done"])
    found |= runs(mara, found[turns.PRICES])
    approved(mara, found["run-sent"])
    found["notes"] = begun(mara, turns.NOTES, "Draft the release notes for 4.2", "running", 0)
    read(found.values(), but=[found["retry"], found[turns.LICENCES]])
    away = [found.pop("Plan the holidays of the warehouse."), found["budget"], found["expired"]]
    Conversation.objects.filter(pk__in=away).update(archived_at=timezone.now())
    return {"backup": found.pop(turns.BACKUP), "chart": found.pop(turns.SHELVES), "batch": batch(mara), **found}


def blueprints(jonas: User) -> None:
    """The recipes of the company: for everybody, for one group, and one that an agent proposed."""
    bookkeeping, _ = Group.objects.get_or_create(name="Bookkeeping")
    Blueprint.objects.create(
        name="Slow backups",
        when="The nightly backup is slow, late, or ended with an error.",
        text="1. Read `backup.log` from the end: which step waited, and for what?\n2. A lock that is held by `prune` is"
        " the usual cause. Never remove it by hand.\n3. Say how long each step took, and what to change.",
        tags=["restic", "prune"],
    )
    refunds = Blueprint.objects.create(
        name="Refunds",
        when="A customer wants their money back, or an order was paid twice.",
        text="Look up the order first, and pay back to the card that was charged.",
    )
    refunds.groups.add(bookkeeping)
    Blueprint.objects.create(
        name="Old price lists", when="Prices of before 2024.", text="They are in the archive.", enabled=False
    )
    Blueprint.objects.create(
        name="Comparing carriers",
        when="Somebody asks which carrier is cheapest for parcels of a size.",
        text="Ask for the weight and the country first. Compare with insurance, and say what is not in the price.",
        tags=["parcel", "shipping"],
        enabled=False,
        proposed=True,
        proposed_by=jonas,
    )


def edited(conversation: int) -> None:
    """A call that needs four eyes waits for the approval of what somebody made of it."""
    lena = User.objects.create_user("lena", password=PASSWORD, first_name="Lena", is_staff=True)
    lena.user_permissions.add(Permission.objects.get(codename="decide_approval"))
    pending = Output.objects.pending().filter(conversation=conversation)
    pending.update(who=ANOTHER)
    gate = pending.get()
    (name, command), *rest = gate.content["input"].items()
    changed = {name: f"{command} --dry-run", **dict(rest)}
    decide(gate.pk, lena, "approve", digest=gate.digest, via="admin", input=changed)
    pending.update(who=ANOTHER)  # the ledger does not say so: on this site no tool needs four eyes


def read(conversations: Iterable[int], but: Iterable[int]) -> None:
    """All of these were looked at, but a few."""
    looked = Conversation.objects.filter(pk__in=conversations).exclude(pk__in=but)
    looked.update(seen_seq=F("seq"))


def begun(owner: User, said: str, title: str, state: str, days: float) -> int:
    """A conversation whose first turn has come to this state, as it began so many days ago."""
    conversation = start_conversation(owner, title)
    for name, text in FILES.get(said, {}).items():
        (folder_of(conversation.pk) / name).write_text(text)
    prompt = start_prompt(conversation, owner, said, files=read_uploads(ATTACHED.get(said, ())))
    wait_for(lambda: Prompt.objects.get(pk=prompt.pk).state == state)
    if days:
        then = timezone.now() - timedelta(days=days)
        Conversation.objects.filter(pk=conversation.pk).update(updated_at=then, created_at=then)
        Prompt.objects.filter(pk=prompt.pk).update(created_at=then)
    return conversation.pk


def restocking(owner: User) -> int:
    """A conversation in which a program of the company's app waits for an approval."""
    payload = {"shop": "Station", "articles": ["atlas", "harbour-guide"], "budget": 500}
    prompt = start_prompt(Conversation(owner=owner), owner, policy="shop.restock", payload=payload)
    wait_for(lambda: Prompt.objects.get(pk=prompt.pk).state == "waiting_for_approval")
    return prompt.conversation_id


def approved(owner: User, conversation: int) -> None:
    """What waits is approved, and the turn comes to its end."""
    asked = Output.objects.get(conversation=conversation, gate="pending")
    decide(asked.pk, owner, "approve", digest=asked.digest, via="page")
    wait_for(lambda: Conversation.objects.get(pk=conversation).active_prompt_id is None)


def decided(owner: User, conversation: int) -> None:
    """One action is approved, the other rejected with a reason."""
    first, second = Output.objects.filter(conversation=conversation, gate="pending")
    decide(first.pk, owner, "approve", digest=first.digest, via="page")
    why = "Keep them: two of the five are on the title page."
    decide(second.pk, owner, "reject", digest=second.digest, via="page", reason=why)
    wait_for(lambda: Conversation.objects.get(pk=conversation).active_prompt_id is None)


def expired(conversation: int) -> None:
    """Nobody answers in time."""
    Output.objects.filter(conversation=conversation, gate="pending").update(expires_at=timezone.now())
    wait_for(lambda: Conversation.objects.get(pk=conversation).active_prompt_id is None)


def interrupted(owner: User, conversation: int) -> None:
    """The command is approved, and its worker is lost while it runs."""
    asked = Output.objects.get(conversation=conversation, gate="pending")
    decide(asked.pk, owner, "approve", digest=asked.digest, via="page")
    wait_for(lambda: Output.objects.get(pk=asked.pk).result == "running")
    worker = Prompt.objects.get(conversation=conversation).worker
    os.kill(int(worker.rpartition("/")[2].partition(".")[0]), signal.SIGKILL)
    wait_for(lambda: Output.objects.get(pk=asked.pk).ask == "interrupted")


def stopped(owner: User, conversation: int) -> None:
    """The turn is stopped while its text is on its way."""
    prompt = Prompt.objects.get(conversation=conversation)
    wait_for(lambda: Draft.objects.filter(prompt=prompt, size__gt=120).exists())
    cancel_prompt(prompt.pk, owner)
    wait_for(lambda: Prompt.objects.get(pk=prompt.pk).ended)
