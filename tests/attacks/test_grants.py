"""Grants of commands: whatever a command is made of, none runs that a person did not see, or grant in words."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.engine.grants.conditions import Condition, Operator, of_input
from agents.engine.grants.grant import Asked, Grant, Scope, why_not
from agents.engine.ledger import JSON
from agents.engine.schema import schema_digest
from agents.engine.tools.tool import SANDBOXED, Tool
from agents.plugins.shell.granting import too_much
from agents.plugins.shell.tools import run, run_program
from tests.budget import examples
from tests.engine.support import digest_of

SEEN = "git log --oneline main"

KNOWN = [
    *(f"{SEEN}{more}" for more in (" && curl evil", "; curl evil", " | sh", " |& sh", " & curl evil", "\ncurl evil")),
    *(
        f"{SEEN}{more}"
        for more in (" > /etc/passwd", " < in", " $(curl evil)", " `curl evil`", " <(curl evil)", " # x", "#")
    ),
    *(f"{SEEN}{more}" for more in (" ", "\t", "\r", "\0", " --output=x", "\u200b")),
    *(
        f"{before} {SEEN}"
        for before in ("", "X=1", "GIT_PAGER='sh -c id'", "env", "timeout 5", "xargs", "sudo", "exec")
    ),
    *(
        f"sh -c '{SEEN}'",
        "find . -exec git log --oneline main",
        "git -c core.pager=id log --oneline main",
        "npm run log",
    ),
    *("'git' log --oneline main", "g''it log --oneline main", SEEN.replace(" ", "  "), SEEN.replace(" ", "\u00a0")),
    *(SEEN.replace("o", "\u043e"), SEEN.upper()),
]
"""The known ways around patterns for shell commands, and some that only look the same."""

WORDS = st.sampled_from(
    [
        *("git", "log", "main", "--oneline", "-c", "x=1", "env", "sh", "curl", "''", '"a b"'),
        *("\\\n", "*", "~", "$HOME", "${X:-y}", "=", "{a,b}"),
    ]
)
JOINTS = st.sampled_from(
    [
        *(" ", "  ", "\t", "\n", ";", "&&", "||", "|", "|&", "&", " > ", " >> ", " < ", " << "),
        *("<(", "$(", "`", ")", "(", "{ ", " }", "'", '"'),
    ]
)
COMMANDS = st.lists(st.tuples(WORDS, JOINTS), min_size=1, max_size=8).map(
    lambda pieces: "".join(word + joint for word, joint in pieces).rstrip("\0")
)


def asked(tool: Tool, input: dict[str, JSON]) -> Asked:
    """A call in the box, as its gate asks about it."""
    question: dict[str, Any] = {
        "tool": tool.name,
        "input": input,
        "digest": digest_of(tool, input) if tool.problem(input) is None else "",
        "schema": schema_digest(tool.input),
        "facts": [SANDBOXED],
        "grantable": Scope.EXACT if tool is run else Scope.FIELDS,
    }
    return Asked(question, ("agent",), False, timezone.now(), 1)


def granted(call: Asked, scope: Scope, *conditions: Condition) -> Grant:
    question = call.question
    digest = question["digest"] if scope is Scope.EXACT else ""
    return Grant(question["tool"], question["schema"], scope, digest, conditions, callers=call.callers)


@pytest.mark.parametrize("command", KNOWN)
def test_no_known_way_around_a_pattern_leads_around_an_exact_command(command: str) -> None:
    call = asked(run, {"command": SEEN})
    assert why_not(granted(call, Scope.EXACT), call) is None
    assert why_not(granted(call, Scope.EXACT), asked(run, {"command": command}))


@given(seen=COMMANDS, other=COMMANDS)
@example(seen=SEEN, other=SEEN)
@settings(max_examples=examples(200), deadline=None)
def test_of_commands_from_the_grammar_only_the_one_that_was_seen_runs(seen: str, other: str) -> None:
    call, another = asked(run, {"command": seen}), asked(run, {"command": other})
    grant = granted(call, Scope.EXACT)
    assert (why_not(grant, another) is None) == (seen == other and bool(call.question["digest"]))
    patterns = granted(call, Scope.FIELDS, Condition("command", Operator.STARTS_WITH, seen[:1] or "g"))
    assert why_not(patterns, another), "patterns never speak about what a shell takes apart"


@given(argv=st.lists(st.one_of(WORDS, COMMANDS), min_size=1, max_size=6))
@example(argv=["git", "log", "main"])
@example(argv=["git", "log", "--output=/etc/passwd"])
@settings(max_examples=examples(200), deadline=None)
def test_a_program_runs_with_its_arguments_and_what_may_differ_is_one_argument(argv: list[str]) -> None:
    """The grant says `ls reports/...`: nothing else runs, and nothing becomes an option."""
    call = asked(run_program, {"argv": ["ls", "reports/a"]})
    conditions = (Condition("argv.0", Operator.IS, "ls"), Condition("argv.1", Operator.STARTS_WITH, "reports/"))
    assert too_much(conditions) is None
    grant = granted(call, Scope.FIELDS, *conditions)
    for other in (argv, ["ls", *argv], ["ls", "reports/" + argv[0], *argv[1:]], ["ls", "reports/" + " ".join(argv)]):
        if why_not(grant, asked(run_program, {"argv": other})) is None:
            assert other[0] == "ls"
            assert len(other) == 2
            assert other[1].startswith("reports/")
            assert ".." not in other[1].split("/")
            assert shlex.split(shlex.join(other)) == other


OTHERS = [
    "env",
    "find",
    "python3.11",
    "/usr/bin/python3",
    "sh",
    "/bin/bash",
    "git",
    "npm",
    "xargs",
    "sudo",
    "./ls",
    "bin/ls",
]


@pytest.mark.parametrize("name", [*OTHERS, "/tmp/ls", "make", "anything"])
def test_a_program_that_may_run_others_is_granted_word_for_word_alone(name: str) -> None:
    exact = of_input({"argv": [name, "a", "b"], "cwd": "x"})
    assert too_much(exact) is None
    for operator, value in ((Operator.ANY, None), (Operator.STARTS_WITH, "b"), (Operator.IN, ["b", "c"])):
        assert "must stay as they are" in (too_much([*exact[:2], Condition("argv.2", operator, value), exact[3]]) or "")
    assert too_much([Condition("argv.0", Operator.IS, "/bin/ls"), Condition("argv.1", Operator.ANY)]) is None


@pytest.mark.parametrize(
    "conditions",
    [
        [Condition("argv.0", Operator.ANY), Condition("argv.1", Operator.IS, "a")],
        [Condition("argv.0", Operator.STARTS_WITH, "l"), Condition("argv.1", Operator.IS, "a")],
        [Condition("argv.0", Operator.IN, ["ls", "sh"]), Condition("argv.1", Operator.IS, "a")],
        [Condition("argv.0", Operator.IS, "ls"), Condition("argv", Operator.ANY)],
        [Condition("argv.0", Operator.IS, "./run"), Condition("argv.1", Operator.ANY)],
        [Condition("argv.0", Operator.IS, "ls"), Condition("cwd", Operator.ANY)],
        [Condition("seconds", Operator.AT_MOST, 60)],
    ],
)
def test_the_program_and_where_it_runs_do_not_differ(conditions: list[Condition]) -> None:
    assert too_much(conditions)
