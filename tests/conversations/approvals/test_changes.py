"""Approving file changes: exactly what a person was shown happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.engine.interfaces.provider import Answer
from agents.engine.ledger import JSON
from agents.engine.outputs.change import CHANGE_MOST, Change
from agents.engine.outputs.kinds import ToolOutput
from agents.plugins.files.tools import edit_file, write_file
from conversations.approvals.decisions import Conflict, DecisionRefused, decide
from conversations.display.gate import card
from conversations.display.shapes.outputs import outputs_of
from conversations.files.workspaces import folder_of
from conversations.models import Output, Prompt, State
from conversations.models import Step as Row
from conversations.pages.chat.live import catch_up
from conversations.prompts.start import start_conversation
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, pending
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def desk(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any) -> Site:
    """A site whose agent writes and edits files, in folders of this test's own."""
    settings.AGENTSITE_WORKSPACES = tmp_path
    tools = [write_file, edit_file]
    monkeypatch.setattr(site.world, "tools", lambda: tools)
    return site


@pytest.fixture
def page(ann: User, client: Client) -> Client:
    """Ann's browser; she may see the admin."""
    ann.is_staff = ann.is_superuser = True
    ann.save()
    client.force_login(ann)
    return client


def asks(*calls: dict[str, JSON]) -> tuple[Answer, Answer]:
    """A model that asks for one call each, to write or to edit."""
    return says("", *(call("files.edit" if "old" in each else "files.write", **each) for each in calls)), says("Done.")


def waits(desk: Site, ann: User, *calls: dict[str, JSON], **there: str) -> tuple[Prompt, Path, list[Output]]:
    """A turn that waits with these calls, the folder that they are about, with these files in it, and the gates."""
    conversation = start_conversation(ann)
    folder = folder_of(conversation.pk)
    for name, text in there.items():
        (folder / name).write_text(text)
    prompt = desk.runs(ann, *asks(*calls), conversation=conversation)
    return prompt, folder, pending(prompt)


def approve(gate: Output, by: User, **more: Any) -> Output:
    return decide(gate.pk, by, "approve", **{"digest": gate.digest, "via": "page"} | more)


def change_of(gate: Output) -> Change | None:
    entry = Output.objects.get(pk=gate.pk).entry()
    assert isinstance(entry, ToolOutput)
    assert entry.approval
    return entry.approval.change


def result_of(prompt: Prompt, path: str = "1/0") -> dict[str, JSON]:
    return Row.objects.get(prompt=prompt, path=path, type="action_result").content


def words(html: str) -> str:
    return " ".join(re.sub("<.*?>", " ", html).split())


EDIT: dict[str, JSON] = {"path": "./plan", "old": "two", "new": "2"}
WRITE: dict[str, JSON] = {"path": "new/plan", "content": "all\nof it\n"}


def test_what_is_approved_is_what_is_written(desk: Site, ann: User) -> None:
    prompt, folder, (edit, write) = waits(desk, ann, EDIT, WRITE, plan="one\ntwo\n")
    assert change_of(edit) == Change(path="plan", before="one\ntwo\n", after="one\n2\n")
    assert change_of(write) == Change(path="new/plan", before=None, after="all\nof it\n")
    assert not (folder / "new").exists(), "nobody approved anything yet"
    approve(edit, ann)
    approve(write, ann)
    desk.works()
    assert (folder / "plan").read_text() == "one\n2\n"
    assert (folder / "new" / "plan").read_text() == "all\nof it\n"
    prompt.refresh_from_db()
    assert prompt.state == State.COMPLETED
    assert verify(prompt.conversation_id).problems == []


def test_a_file_that_changed_since_is_not_written_over(desk: Site, ann: User) -> None:
    """The text that was there when it was asked has to be there when it begins (I6)."""
    prompt, folder, gates = waits(desk, ann, EDIT, {"path": "other", "content": "new"}, plan="one\ntwo\n", other="was")
    (folder / "plan").write_text("zero\none\ntwo\n")
    (folder / "other").unlink()
    for gate in gates:
        approve(gate, ann)
    desk.works()
    assert (folder / "plan").read_text() == "zero\none\ntwo\n"
    assert not (folder / "other").exists()
    assert [result_of(prompt, f"1/{n}")["code"] for n in (0, 1)] == ["changed_since"] * 2
    assert verify(prompt.conversation_id).problems == []


def test_nobody_is_asked_about_what_cannot_be_done(desk: Site, ann: User) -> None:
    prompt, _, gates = waits(desk, ann, EDIT, {"path": "../x", "content": ""}, plan="one\n")
    assert gates == []
    prompt.refresh_from_db()
    assert prompt.state == State.COMPLETED
    assert [result_of(prompt, f"1/{n}")["code"] for n in (0, 1)] == ["not_found", "bad_path"]


def test_an_edited_text_is_written_as_edited_and_both_are_kept(desk: Site, ann: User, page: Client) -> None:
    """The card of it shows what the person made of it; what the agent proposed is there too, line by line."""
    prompt, folder, (gate,) = waits(desk, ann, {"path": "plan", "content": "agent\n"}, plan="old\n")
    approve(gate, ann, input={"path": "plan", "content": "mine\n"})
    desk.works()
    assert (folder / "plan").read_text() == "mine\n"
    row = Output.objects.get(pk=gate.pk)
    shown = card(row, {row.decided_by: "you"})
    assert shown.call.change == Change(path="plan", before="old\n", after="mine\n")
    assert shown.proposed
    assert shown.proposed.change == Change(path="plan", before="old\n", after="agent\n")
    assert verify(prompt.conversation_id).problems == []
    for address in (prompt.conversation.get_absolute_url(), f"/admin/conversations/approval/{gate.pk}/change/"):
        html = page.get(address).text
        assert html.index("mine") < html.index("View the original input") < html.rindex(">agent<")
        changed = html[html.index("What the edit changed") : html.index("View the original input")]
        assert ">agent<" in changed
        assert ">mine<" in changed


def test_another_file_has_to_be_seen_before_it_is_approved(desk: Site, ann: User, page: Client) -> None:
    """An edit that leads to another file is not decided yet: its diff is shown, and approved by its own digest."""
    prompt, folder, (gate,) = waits(desk, ann, {"path": "plan", "content": "new\n"}, plan="old\n", diary="dear\n")
    other = {"path": "diary", "content": "new\n"}
    with pytest.raises(Conflict) as caught:
        approve(gate, ann, input=other)
    assert caught.value.code == "facts_changed"
    assert caught.value.details["facts"] == ["Replaces diary."]
    assert caught.value.details["change"] == {"path": "diary", "before": "dear\n", "after": "new\n"}
    html = page.get(reverse("card", args=[gate.pk]), {"as": "edit"}, headers=HTMX).text
    names = re.findall(r'name="([a-z]+-\d)"', html)
    form = {"decision": "approve", "digest": gate.digest, "edited": "1", names[0]: "diary", names[1]: "new\n"}
    answer = page.post(reverse("decide", args=[gate.pk]), form, headers=HTMX)
    assert answer.status_code == 409
    assert "dear" in answer.text
    assert "+1 \N{MINUS SIGN}1" in words(answer.text)
    seen = re.findall(r'name="seen" value="([0-9a-f]{64})"', answer.text)
    assert seen == [caught.value.details["digest"]]
    assert page.post(reverse("decide", args=[gate.pk]), form | {"seen": seen[0]}).status_code == 302
    desk.works()
    assert ((folder / "plan").read_text(), (folder / "diary").read_text()) == ("old\n", "new\n")
    assert verify(prompt.conversation_id).problems == []


def test_an_edit_of_a_file_that_is_another_by_now_has_to_be_seen(desk: Site, ann: User) -> None:
    """The person edits what was shown; where something else stands there, that is shown first."""
    _, folder, (gate,) = waits(desk, ann, {"path": "plan", "content": "agent\n"}, plan="old\n")
    mine = {"path": "plan", "content": "mine\n"}
    (folder / "plan").write_text("meanwhile\n")
    with pytest.raises(Conflict) as caught:
        approve(gate, ann, input=mine)
    assert caught.value.details["change"]["before"] == "meanwhile\n"
    (folder / "plan").unlink()
    with pytest.raises(Conflict) as caught:
        approve(gate, ann, input=mine)
    assert caught.value.details["facts"] == ["Creates plan, a new file."]
    approve(gate, ann, input=mine, digest=caught.value.details["digest"])
    desk.works()
    assert (folder / "plan").read_text() == "mine\n"


def test_an_edit_that_cannot_work_decides_nothing(desk: Site, ann: User) -> None:
    _, _, (gate,) = waits(desk, ann, EDIT, plan="one\ntwo\n")
    for wrong, says_ in ((EDIT | {"old": "three"}, "does not occur"), (EDIT | {"path": "/etc/x"}, "is absolute")):
        with pytest.raises(DecisionRefused) as caught:
            approve(gate, ann, input=wrong)
        assert caught.value.code == "invalid_input"
        assert says_ in str(caught.value)
    assert Output.objects.get(pk=gate.pk).gate == "pending"


def test_where_nobody_can_say_what_an_edit_changes_it_is_not_taken(
    desk: Site, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A web process without the tool can show what was recorded, and decide it; not work out another change."""
    _, _, (gate,) = waits(desk, ann, EDIT, plan="one\ntwo\n")
    monkeypatch.setattr("conversations.approvals.edits.installed_tool", lambda name: None)
    with pytest.raises(DecisionRefused) as caught:
        approve(gate, ann, input=EDIT | {"new": "3"})
    assert caught.value.code == "not_editable"
    assert approve(gate, ann).gate == "approved"


def test_the_diff_stands_wherever_it_is_decided_or_was(desk: Site, ann: User, page: Client) -> None:
    """In the chat, pushed, on the sheet, in the admin alone and together: whole, with its effect on the button."""
    long = "".join(f"line {n}\n" for n in range(300))
    prompt, _, (edit, write) = waits(desk, ann, EDIT, {"path": "long", "content": long}, plan="one\ntwo\nthree")
    chat = prompt.conversation.get_absolute_url()
    admin = "/admin/conversations/approval/"
    together = page.post(admin, {"action": "decide_together", "_selected_action": [edit.pk, write.pk]}, follow=True)
    pages = [
        page.get(chat).text,
        page.get(reverse("sheet", args=[prompt.conversation_id])).text,
        together.text,
        catch_up(prompt.conversation_id, 0)[0],
        page.get(f"{admin}{edit.pk}/change/").text + page.get(f"{admin}{write.pk}/change/").text,
    ]
    for html in pages:
        told = words(html)
        for shown in (
            "plan +1 \N{MINUS SIGN}1",
            "@@ -1,3 +1,3 @@",
            "2 \N{MINUS SIGN} two",
            "2 + 2",
            "long new file +300",
        ):
            assert shown in told
        for n in range(300):
            assert f"{n + 1} + line {n}" in told
        assert "Changes plan in one place." in told
        assert '<p class="why">' not in told
        assert "Edit: ./plan" not in told
    assert "Approve and write" in pages[0]
    assert "View the raw input" in pages[0]


def test_programs_are_told_what_they_approve(desk: Site, ann: User) -> None:
    prompt, _, _ = waits(desk, ann, WRITE)
    told: Any = next(each.json_value() for each in outputs_of(prompt) if each.type == "tool")
    assert told["approval"]["change"] == {"path": "new/plan", "before": None, "after": "all\nof it\n"}


def test_what_is_too_large_is_shown_as_it_was_given(desk: Site, ann: User, page: Client) -> None:
    """No diff, a warning, and the whole text."""
    text = "x" * CHANGE_MOST + "end"
    prompt, folder, (gate,) = waits(desk, ann, {"path": "big", "content": text})
    assert change_of(gate) is None
    html = page.get(prompt.conversation.get_absolute_url()).text
    assert text in html
    assert re.search(r'<li class="warn">.*?Not shown as a diff: too large', html, re.S)
    approve(gate, ann)
    desk.works()
    assert (folder / "big").read_text() == text
