"""A command ends, and nothing that it started outlives it: whatever it ignores, wherever it hides."""

import asyncio
import os
import signal
import time

import pytest

from agents.plugins.shell import limits
from agents.plugins.shell.tools import run
from tests.plugins.calls import Desk, idle, running, soon, start_worker, until

pytestmark = pytest.mark.usefixtures("machine")


LEFT_BEHIND = {
    "in the background": "{idle} & echo said",
    "holding stdout open": "({idle} &) ; echo said",
    "a daemon": "setsid {idle} > /dev/null 2>&1 < /dev/null & disown; echo said",
    "a daemon's daemon": "setsid bash -c 'setsid {quoted} & exit' & wait; echo said",
    "deaf to TERM and HUP": "trap '' TERM HUP INT; setsid {idle} & echo said",
    "stopped": "{idle} & kill -STOP $!; echo said",
}


@pytest.mark.parametrize("how", LEFT_BEHIND)
async def test_what_is_left_behind_ends_with_the_command(desk: Desk, mark: str, how: str) -> None:
    quoted = f'bash -c "while :; do sleep 999; done" {mark}'
    began = time.monotonic()
    result = await desk.call(run, command=LEFT_BEHIND[how].format(idle=idle(mark), quoted=quoted))
    assert time.monotonic() - began < 5
    assert (result["stdout"], result["exit"]) == ("said\n", 0)
    assert not running(mark)


AT_THE_LIMIT = {
    "asleep": "{idle}",
    "deaf": "trap '' TERM INT HUP; {idle}; {idle}",
    "with a daemon": "setsid {idle} & {idle}",
    "computing": "while :; do :; done # {mark}",
    "printing": "yes {mark}",
    "stopping itself": "kill -STOP $$ # {mark}",
    "holding stdout": "setsid {idle} & exec {idle}",
}


@pytest.mark.parametrize("how", AT_THE_LIMIT)
async def test_the_time_limit_ends_all_of_it(desk: Desk, mark: str, how: str) -> None:
    began = time.monotonic()
    command = AT_THE_LIMIT[how].format(idle=idle(mark), mark=mark)
    result = await desk.call(run, command=command, timeout_seconds=1)
    assert time.monotonic() - began < 1 + 5
    assert result["note"].startswith("Ended after 1 seconds, its time limit.")
    assert result["exit"] in (137, 143)
    assert not running(mark)


async def test_it_is_asked_before_it_is_killed(desk: Desk, mark: str) -> None:
    result = await desk.call(run, command="trap 'echo tidied; exit 5' TERM; sleep 99 & wait", timeout_seconds=1)
    assert (result["stdout"], result["exit"]) == ("tidied\n", 5)
    assert not running(mark)


# Bounded themselves: where the limit fails, the machine of whoever runs this must not go down with it.
@pytest.mark.parametrize(
    "loop", ["for n in $(seq 3000); do {idle} & done; wait", "(for n in $(seq 3000); do {idle} & done) & wait"]
)
async def test_a_fork_loop_is_bounded(desk: Desk, mark: str, loop: str) -> None:
    began = time.monotonic()
    result = await desk.call(run, command=loop.format(idle=idle(mark)))
    assert time.monotonic() - began < 15
    assert result["note"] == f"Ended: it ran more than {limits.PROCESSES} processes at the same time."
    assert not running(mark)


async def test_memory_is_bounded_in_one_process(desk: Desk) -> None:
    result = await desk.call(run, command="/usr/bin/env python3 -c 'x = bytearray(3 * 2**30)'")
    assert "MemoryError" in result["stderr"]


async def test_memory_is_bounded_in_all_together(desk: Desk, mark: str) -> None:
    grow = "x = []\nwhile True: x.append(bytearray(b'x' * 10**7))"
    command = f'for n in 1 2 3 4; do python3 -c "{grow}" {mark} & done; wait'
    result = await desk.call(run, command=command)
    assert result["note"] == "Ended: it used more than 2 GiB of memory."
    assert not running(mark)


async def test_the_size_of_a_file_is_bounded(desk: Desk) -> None:
    result = await desk.call(run, command="truncate -s 2G big")
    assert result["exit"] != 0
    assert not (desk.workspace / "big").stat().st_size


async def test_a_cancelled_call_ends_its_command_first(desk: Desk, mark: str) -> None:
    call = asyncio.create_task(desk.call(run, command=f"setsid {idle(mark)} & yes"))
    await soon(lambda: desk.services.drafts and running(mark))
    call.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - began < 5
    assert not running(mark)


async def test_a_call_cancelled_at_once_starts_nothing_that_stays(desk: Desk, mark: str) -> None:
    for _ in range(5):
        call = asyncio.create_task(desk.call(run, command=idle(mark)))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    until(lambda: not running(mark))


@pytest.mark.parametrize("killed", ["worker", "group"])
def test_a_killed_worker_leaves_no_orphan(desk: Desk, mark: str, machine: str, killed: str) -> None:
    command = f"setsid {idle(mark)} & trap '' TERM; {idle(mark)}; {idle(mark)}"
    worker = start_worker(desk, machine, command)
    try:
        until(lambda: len(running(f"done\0{mark}")) >= 2, 20)
    finally:
        worker.kill() if killed == "worker" else os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    until(lambda: not running(mark), 10)
