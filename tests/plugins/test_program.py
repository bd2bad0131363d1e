"""Programs that run without a shell: with exactly these arguments, in the same box, and only in the workspace."""

import asyncio
import stat

import pytest

from agents.engine.execution.gates import approval_reason
from agents.engine.tools.tool import Risk, ToolCall
from agents.plugins.shell import limits
from agents.plugins.shell.tools import ARGUMENTS_MOST, LENGTH_MOST, Program, run, run_program
from tests.engine.support import shown_of
from tests.plugins.calls import SECRET, Desk, idle, running, soon

pytestmark = pytest.mark.usefixtures("machine")

ODD = ["", " ", "a b", "one\ntwo\n", "$HOME", "`id`", "$(id)", "*", "~", ";", "| cat", "'", '"', "\\", "-x", "é", "\r"]


async def test_it_is_given_exactly_these_arguments(desk: Desk) -> None:
    result = await desk.call(run_program, argv=["python3", "-c", "import sys; print(ascii(sys.argv[1:]))", *ODD])
    assert result["stdout"] == f"{ODD!a}\n"
    assert (result["exit"], result["stderr"]) == (0, "")


async def test_its_result_is_that_of_a_command(desk: Desk) -> None:
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    result = await desk.call(run_program, argv=["python3", "-c", script])
    assert result.pop("seconds") > 0
    assert result == {"stdout": "out\n", "stderr": "err\n", "exit": 3}


@pytest.mark.parametrize("name", ["no-such-program", "./missing.sh", "/usr/bin/no-such-program", "cd"])
async def test_a_program_that_does_not_exist_is_a_result_as_in_a_shell(desk: Desk, name: str) -> None:
    result = await desk.call(run_program, argv=[name, "x"])
    assert result["exit"] == 127
    assert f"{name}: not found" in result["stderr"]


async def test_a_file_that_is_no_program_is_one_too(desk: Desk) -> None:
    (desk.workspace / "notes.txt").write_text("hello")
    assert (await desk.call(run_program, argv=["./notes.txt"]))["exit"] == 126


async def test_it_starts_in_the_folder_that_it_names(desk: Desk) -> None:
    below = desk.workspace / "reports" / "of 2025"
    below.mkdir(parents=True)
    (below / "own.sh").write_text('#!/bin/sh\nprintf "%s\\n" "$1" > made.txt\npwd -P\n')
    (below / "own.sh").chmod(stat.S_IRWXU)
    result = await desk.call(run_program, argv=["./own.sh", "a b"], cwd="reports/of 2025/")
    assert result["stdout"].endswith("/reports/of 2025\n")
    assert (below / "made.txt").read_text() == "a b\n"


@pytest.mark.parametrize("cwd", ["/", "/usr", "..", "reports/..", "../data", "a/../../data", "", "a\0b", "x" * 1_001])
def test_a_folder_that_leads_out_is_refused_before_anybody_is_asked(cwd: str) -> None:
    assert run_program.problem({"argv": ["ls"], "cwd": cwd})


@pytest.mark.parametrize("cwd", ["out", "reports/out", "out/deeper"])
async def test_a_link_leads_nowhere(desk: Desk, cwd: str) -> None:
    (desk.outside / "deeper").mkdir()
    (desk.workspace / "reports").mkdir()
    for link in ("out", "reports/out"):
        (desk.workspace / link).symlink_to(desk.outside)
    assert (await desk.refused(run_program, argv=["cat", "secret.key"], cwd=cwd)).code == "link"


@pytest.mark.parametrize(("cwd", "code"), [("missing", "not_found"), ("file", "not_a_folder")])
async def test_a_folder_that_is_none_is_an_error(desk: Desk, cwd: str, code: str) -> None:
    (desk.workspace / "file").touch()
    assert (await desk.refused(run_program, argv=["ls"], cwd=cwd)).code == code


async def test_swapping_its_folder_for_a_link_gains_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts in the folder that was opened, whatever has its name by then."""
    (desk.workspace / "reports").mkdir()
    start = asyncio.create_subprocess_exec

    async def swapped(*argv: str, **more: object) -> object:
        (desk.workspace / "reports").rename(desk.workspace / "moved")
        (desk.workspace / "reports").symlink_to(desk.outside)
        return await start(*argv, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", swapped)
    result = await desk.call(run_program, argv=["cat", "secret.key"], cwd="reports")
    assert SECRET not in result["stdout"]
    assert "No such file" in result["stderr"]


@pytest.mark.parametrize(
    "argv",
    [
        [],
        [""],
        [" \n"],
        ["ls", "a\0b"],
        ["l\0s"],
        ["-x", "ls"],
        ["../data/evil"],
        ["./../../data/evil"],
        ["bin/../../data/evil"],
        [".."],
        ["ls", 7],
        "ls -la",
        ["ls", "\ud800"],
        ["ls", *[""] * ARGUMENTS_MOST],
        ["ls", "x" * LENGTH_MOST],
        ["ls", *["x" * 1_000] * 30],
    ],
    ids=repr,
)
def test_what_cannot_be_run_is_refused(argv: object) -> None:
    assert run_program.problem({"argv": argv})


@pytest.mark.parametrize("name", ["/usr/bin/true", "true", "./a..b"])
def test_a_name_and_a_path_are_no_problem(name: str) -> None:
    assert run_program.problem({"argv": [name, "../x", "-y"]}) is None


async def test_as_much_as_is_allowed_can_be_started(desk: Desk) -> None:
    one = "\N{GRINNING FACE}" * (LENGTH_MOST - 4)
    many = ["true", *["\N{GRINNING FACE}" * 30] * (ARGUMENTS_MOST - 1)]
    for argv in (["true", one], many):
        assert (await desk.call(run_program, argv=argv))["exit"] == 0


async def test_what_a_library_would_be_told_in_a_shell_is_only_an_argument(desk: Desk) -> None:
    result = await desk.call(run_program, argv=["env", "LD_PRELOAD=./evil.so"])
    assert "LD_PRELOAD" in result["stdout"], "env sets it, for what it runs"
    assert (await desk.call(run_program, argv=["LD_PRELOAD=./evil.so", "true"]))["exit"] == 127


async def test_it_ends_at_its_limit_with_all_that_it_started(desk: Desk, mark: str) -> None:
    call = asyncio.create_task(desk.call(run_program, argv=["bash", "-c", f"{idle(mark)} & {idle(mark)}"], seconds=1))
    await soon(lambda: running(mark))
    assert (await call)["note"] == "Ended after 1 seconds, its time limit."
    assert not running(mark)


async def test_every_call_waits_for_a_person(desk: Desk) -> None:
    input = Program(argv=["git", "commit", "-m", "it's done"])
    call = ToolCall("shell.program", input, user=1, services=desk.services, path="1/0")
    said = """git commit -m 'it'"'"'s done'"""
    assert (run_program.risk, run_program.idempotent, run_program.approval) == (Risk.HIGH, False, True)
    assert (run_program.category, run_program.time_limit) == (run.category, run.time_limit)
    assert await approval_reason(run_program, call) == f"Run: {said}"
    assert run_program.says is not None
    assert run_program.says(input) == f"ran {said}"


def test_the_card_says_how_far_it_reaches_and_where_it_starts(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (reach, place), (_, root) = (
        shown_of(run_program, {"argv": ["ls"], "seconds": 7, "cwd": cwd}).recorded["facts"]
        for cwd in ("./reports//2025/", ".")
    )
    boxed = "Sandboxed: no network, sees only this conversation's folder."
    assert reach == (boxed if machine == "boxed" else "Not sandboxed: the program runs with the rights of the worker.")
    assert place == "Runs in the folder reports/2025 of this conversation, for at most 7 seconds."
    assert root == "Runs in this conversation's folder, for at most 7 seconds."


@pytest.mark.parametrize("seconds", [0, -1, limits.SECONDS_MOST + 1, "soon"])
def test_a_time_limit_is_within_limits(seconds: object) -> None:
    assert run_program.problem({"argv": ["ls"], "seconds": seconds})
