"""What a command's call gives back, and what a person is told of it before."""

import asyncio
import ctypes
import os

import pytest

from agents.engine.errors import ToolError
from agents.engine.execution.gates import approval_reason, justification
from agents.engine.interfaces.services import Space
from agents.engine.ledger import canonical
from agents.engine.runtime import run as runtime
from agents.engine.tools.tool import Risk, ToolCall
from agents.plugins.shell import limits, probe, process, seccomp, supervise
from agents.plugins.shell.tools import Command, run
from tests.engine.support import shown_of
from tests.plugins.calls import Desk, descriptors, parent_of, running, soon

pytestmark = pytest.mark.usefixtures("machine")


async def test_it_gives_what_was_printed_the_exit_code_and_the_time(desk: Desk) -> None:
    result = await desk.call(run, command="echo out; echo err >&2; exit 3")
    assert 0 < result.pop("seconds") < 5
    assert result == {"stdout": "out\n", "stderr": "err\n", "exit": 3}


async def test_it_runs_in_the_workspace_and_what_it_writes_stays(desk: Desk) -> None:
    await desk.call(run, command="[[ $PWD == $HOME ]] && echo hello > made.txt")
    assert (desk.workspace / "made.txt").read_text() == "hello\n"


async def test_its_environment_is_ours_and_holds_no_secret(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-7d1")
    monkeypatch.setenv("DATABASE_URL", "postgres://canary-7d1@db")
    monkeypatch.setenv("TZ", "UTC")
    result = await desk.call(run, command="env")
    names = {line.partition("=")[0] for line in result["stdout"].splitlines()}
    assert names == {"PATH", "HOME", "LANG", "TZ", "PWD", "SHLVL", "_"}
    assert "canary" not in result["stdout"]


async def test_its_parents_hold_no_secret_either(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor is the command's parent: nothing but its own start is in its environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "canary-7d1")
    result = await desk.call(run, command="tr '\\0' '\\n' < /proc/$PPID/environ")
    assert "canary" not in result["stdout"]


async def test_it_does_not_have_the_keyring_of_the_worker(desk: Desk) -> None:
    """The number of its session keyring, if it can have one at all, is not that of the worker's: this process's."""
    kept = ctypes.CDLL(None).syscall(seccomp.KEYCTL, 1, b"of-the-worker")  # a keyring with this name
    if kept < 0:
        pytest.skip("this machine lets nobody have keyrings")
    own = f"python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall({seccomp.KEYCTL}, 0, -3, 0))'"
    assert int((await desk.call(run, command=own))["stdout"]) != kept


async def test_it_has_no_input_and_no_open_descriptors(desk: Desk) -> None:
    result = await desk.call(run, command="cat; readlink /proc/self/fd/0; ls /proc/self/fd | wc -l")
    assert result["stdout"].split() == ["/dev/null", "4"]  # 0, 1, 2, and the one that reads the folder


async def test_what_it_prints_is_seen_as_it_comes(desk: Desk) -> None:
    call = asyncio.create_task(
        desk.call(run, command="printf 'one\\xe2\\x9c'; until [ -e go ]; do :; done; printf '\\x93'")
    )
    await soon(lambda: "".join(desk.services.drafts) == "one")  # half a character is kept back
    assert not call.done()
    (desk.workspace / "go").touch()
    assert (await call)["stdout"] == "one✓"
    assert "".join(desk.services.drafts) == "one✓"


async def test_what_it_complains_of_is_seen_as_it_comes(desk: Desk) -> None:
    """Each stream has halves of characters of its own: they are not mixed."""
    halves, rest = "printf 'a\\xe2'; printf 'b\\xe2\\x9c' >&2", "printf '\\x93' >&2; printf '\\x9c\\x93'"
    command = f"{halves}; until [ -e go ]; do :; done; {rest}"
    call = asyncio.create_task(desk.call(run, command=command))
    await soon(lambda: sorted("".join(desk.services.drafts)) == ["a", "b"])
    (desk.workspace / "go").touch()
    result = await call
    assert (result["stdout"], result["stderr"]) == ("a✓", "b✓")
    assert sorted("".join(desk.services.drafts)) == sorted("a✓b✓")


async def test_of_a_flood_a_part_is_seen_as_it_comes(desk: Desk) -> None:
    """However fast it prints, whoever runs it hears of half of what is kept: the rest comes with the result."""
    command = f"head -c {10 * limits.OUTPUT} /dev/zero | tr '\\0' x; touch done; until [ -e go ]; do :; done"
    call = asyncio.create_task(desk.call(run, command=command))
    await soon((desk.workspace / "done").exists)
    await soon(lambda: "".join(desk.services.drafts) == "x" * (limits.OUTPUT // 2))
    assert len(desk.services.drafts) < 1000  # not one for each byte
    (desk.workspace / "go").touch()
    await call


async def test_bytes_that_are_no_text_come_as_text(desk: Desk) -> None:
    result = await desk.call(run, command=r"printf 'a\0b\xff\xed\xa0\x80'; printf '\0' >&2")
    assert result["stdout"].startswith("a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}")
    assert "\0" not in result["stdout"] + result["stderr"] + "".join(desk.services.drafts)
    assert "\\u0000" not in canonical(result)
    result["stdout"].encode()


async def test_of_256_mb_the_beginning_and_the_end_are_kept(desk: Desk) -> None:
    result = await desk.call(run, command="echo first; head -c 256M /dev/zero | tr '\\0' x; echo; echo last")
    text = result["stdout"]
    assert len(text) < limits.OUTPUT + 100
    assert text.startswith("first\nxxx")
    assert text.endswith("xxx\nlast\n")
    left_out = 2**28 + len("first\n\nlast\n") - limits.OUTPUT
    assert f"\n[... {left_out:,} bytes left out ...]\n" in text
    assert result["note"] == f"{left_out:,} bytes of its output were left out."


async def test_two_commands_run_side_by_side(desk: Desk) -> None:
    commands = [f"touch {n}; until [ -e {1 - n} ]; do :; done; echo {n}" for n in (0, 1)]
    results = await asyncio.gather(*(desk.call(run, command=command, timeout_seconds=20) for command in commands))
    assert [(result["stdout"], result["exit"]) for result in results] == [("0\n", 0), ("1\n", 0)]


async def test_a_signal_is_told_as_a_shell_tells_it(desk: Desk) -> None:
    assert (await desk.call(run, command="kill -SEGV $$"))["exit"] == 139


async def test_a_workspace_that_is_gone_is_an_answer(desk: Desk) -> None:
    desk.workspace.rmdir()
    result = await desk.call(run, command="true")
    assert result["exit"] != 0
    assert result["stderr"]


async def test_a_supervisor_that_was_killed_is_no_success(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "sandbox", lambda: None)  # in the box a command cannot reach it
    with pytest.raises(ToolError) as caught:
        await desk.call(run, command="kill -9 $PPID; sleep 99")
    assert caught.value.code == "killed"


@pytest.mark.parametrize("command", ["", "  \n", "a\0b", "x" * 30_001, "\ud800"])
def test_what_cannot_be_run_is_refused(command: str) -> None:
    assert run.problem({"command": command})


@pytest.mark.parametrize("seconds", [0, -1, limits.SECONDS_MOST + 1, "soon"])
def test_a_time_limit_is_within_limits(seconds: object) -> None:
    assert run.problem({"command": "ls", "timeout_seconds": seconds})


async def test_the_longest_command_can_be_started(desk: Desk) -> None:
    command = ": " + "\N{GRINNING FACE}" * 29_998
    assert run.problem({"command": command}) is None
    assert (await desk.call(run, command=command))["exit"] == 0


async def test_every_call_waits_for_a_person(desk: Desk) -> None:
    call = ToolCall("shell.run", Command(command="rm -rf build"), user=1, services=desk.services, path="1/0")
    assert (run.risk, run.idempotent, run.approval) == (Risk.HIGH, False, True)
    assert await approval_reason(run, call) == justification(run, call) == "Run: rm -rf build"
    assert run.says is not None
    assert run.says(call.input) == "ran rm -rf build"


def test_the_card_says_how_far_it_reaches(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    probe.sandbox()  # as whoever runs this test
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    reach, place = shown_of(run, {"command": "ls", "timeout_seconds": 7}).recorded["facts"]
    assert (
        reach
        == {
            "boxed": "Sandboxed: no network, sees only this conversation's folder.",
            "unboxed": "Not sandboxed: the command runs with the rights of the worker.",
        }[machine]
    )
    assert place.endswith("at most 7 seconds.")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    reach, *_ = shown_of(run, {"command": "ls"}).recorded["facts"]
    assert ("the worker is root" in reach) is (machine == "unboxed")


def test_a_command_ends_by_its_own_limit_before_its_tool_does() -> None:
    longest = limits.SECONDS_MOST + supervise.GRACE_SECONDS + supervise.END_SECONDS
    assert run.time_limit is not None
    assert run.time_limit > longest


def test_a_command_that_is_ended_ends_before_anybody_stops_waiting_for_it() -> None:
    """So it is never left alone, and whoever ends the turn knows it gone."""
    assert supervise.GRACE_SECONDS + supervise.END_SECONDS < runtime.GRACE_SECONDS


async def test_no_descriptor_and_no_process_is_left(desk: Desk) -> None:
    await desk.call(run, command="true")
    before, children = descriptors(), {pid for pid in running("") if parent_of(pid) == os.getpid()}
    for _ in range(3):
        await desk.call(run, command="head -c 300000 /dev/zero")
    await soon(lambda: descriptors() <= before)
    assert {pid for pid in running("") if parent_of(pid) == os.getpid()} <= children


def test_what_was_cut_and_why_it_ended_are_both_said() -> None:
    report: supervise.ExitReport = {"exit": 143, "seconds": 5.0, "stopped": "time", "left_out": 1000}
    said = process._note(report, Space(), 5)
    assert said == "Ended after 5 seconds, its time limit. 1,000 bytes of its output were left out."
