"""Workers that die around external effects: requests to a model, and the calls it asks for."""

from __future__ import annotations

import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agents.plugins.files.box import Box
from conversations.files.storage import sweep
from conversations.ledger import wakeup
from conversations.models import File, Step
from conversations.verification.stored import verify
from tests.crash.acting import MARKS, Start, asks, began, both, ended, killed_at, payloads
from tests.crash.processes import drain_of, kill, running, wait_for
from tests.crash.site import Site
from tests.crash.turns import LONG_COMMAND, WRITTEN

pytestmark = MARKS


def test_a_worker_killed_before_the_first_byte_asks_once_more(site: Site, start: Start) -> None:
    """CP06: the request was sent and nothing came; the lost attempt stands in the ledger beside the one that counts."""
    start()
    prompt = site.say("think")
    wait_for(site.asked, "the request to the model", site)
    kill(site, drain_of(prompt))
    assert ended(site, prompt).state == "completed"
    assert len(site.asked()) == 2
    assert len(payloads(prompt, "action_start", "1")) == 2
    assert len(payloads(prompt, "action_result", "1")) == 1


def test_a_call_that_was_cut_is_no_call(site: Site, start: Start) -> None:
    """CP08, T-31: the stream ends in the middle of a call's input; the model is asked once more, the tool runs once."""
    start()
    prompt = ended(site, site.say("stutter"))
    assert prompt.state == "completed"
    assert len(site.asked()) == 3
    assert site.effects() == {"1/0": 1}
    assert len(payloads(prompt, "action_call")) == 1


@both
@pytest.mark.parametrize(
    ("said", "times", "comes_to"),
    [
        ("take long", {"1/0 began": 1}, "it_did_not"),
        ("take your time", {"1/0 began": 2, "1/0 ended": 1}, None),
        ("take it again", {"1/0 began": 2, "1/0 ended": 1}, None),
    ],
)
def test_what_a_kill_in_the_middle_of_an_effect_leaves(
    site: Site, start: Start, said: str, times: dict[str, int], comes_to: str | None
) -> None:
    """CP20: what must not be done twice is asked about; what reads, or may be done again, is done again."""
    start()
    prompt = site.say(said)
    began(site)
    kill(site, drain_of(prompt))
    assert ended(site, prompt).state == "completed"
    assert site.effects() == times
    assert [result.get("code") for result in payloads(prompt, "action_result")] == [comes_to]


def test_a_killed_worker_leaves_no_command_behind(site: Site, start: Start) -> None:
    """CP20, T-35: within ten seconds every process of its command is gone."""
    start()
    prompt = site.say("wait")
    site.decide(asks(site, prompt), "approve")
    wait_for(lambda: running(LONG_COMMAND), "the command", site)
    killed_at = time.monotonic()
    kill(site, drain_of(prompt))
    wait_for(lambda: not running(LONG_COMMAND), "the command's end", site)
    assert time.monotonic() - killed_at < 10
    assert asks(site, prompt).ask == "interrupted"


@pytest.mark.parametrize(
    ("place", "parts"), [("empty", [0]), ("half", [len(WRITTEN) // 2]), ("whole", [len(WRITTEN)]), ("named", [])]
)
def test_a_file_is_old_or_new_wherever_its_writer_dies(site: Site, start: Start, place: str, parts: list[int]) -> None:
    """CP20: never torn, and what was being written is in no listing; the call's owner is asked, its result is one."""
    prompt = site.say("write")
    folder = site.folder / "workspaces" / str(prompt.conversation_id)
    folder.mkdir(mode=0o700)
    (folder / "notes.txt").write_text("Old.")
    start(CRASH_WRITE=place)
    site.decide(asks(site, prompt), "approve")
    wait_for((site.folder / "effects.dead").exists, "the death", site)
    assert asks(site, prompt).ask == "interrupted"
    assert (folder / "notes.txt").read_text() == (WRITTEN if place == "named" else "Old.")
    assert [path.stat().st_size for path in folder.glob(".*.part")] == parts
    assert ended(site, prompt, "run_again").state == "completed"
    assert (folder / "notes.txt").read_text() == WRITTEN
    assert [entry.path for entry in Box(folder).walk()] == ["notes.txt"]
    assert len(payloads(prompt, "action_result")) == 1


@pytest.mark.parametrize(("point", "rows"), [("after_content:1", 0), ("before_record:3", 1)])
def test_a_content_that_was_never_recorded_is_swept(
    site: Site, start: Start, settings: Any, point: str, rows: int
) -> None:
    """CP22: no row is without its content; one that no step names goes, with its content, and what is named stays."""
    settings.MEDIA_ROOT = site.folder / "data" / "files"
    name, _, n = point.partition(":")
    start(AGENTSITE_DATA=str(site.folder / "data"), **killed_at(site, name, int(n)))
    prompt = site.say("do")
    assert asks(site, prompt).ask == "interrupted"
    assert File.objects.count() == rows
    assert ended(site, prompt, "run_again").state == "completed"
    for content in settings.MEDIA_ROOT.glob("*/*/*"):
        os.utime(content, (0, 0))
    File.objects.update(created_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert sweep() == 1
    assert verify(prompt.conversation_id).problems == []
    assert [Path(file.content.path) for file in File.objects.all()] == list(settings.MEDIA_ROOT.glob("*/*/*"))


def test_two_of_three_reads_keep_their_results(site: Site, start: Start) -> None:
    """CP24: the third is read again; the model is sent their results in call order, however they ended."""
    start()
    prompt = site.say("three")
    wait_for(lambda: site.effects()["1/2 began"], "the third", site)
    read = ("1/0", "1/1")
    wait_for(lambda: all(payloads(prompt, "action_result", path) for path in read), "the first two results", site)
    kill(site, drain_of(prompt))
    assert ended(site, prompt).state == "completed"
    assert site.effects() == {"1/0": 1, "1/1": 1, "1/2 began": 2, "1/2 ended": 1}
    results = Step.objects.filter(prompt=prompt, type="action_result", path__startswith="1/")
    assert sorted(results.values_list("path", flat=True)) == ["1/0", "1/1", "1/2"]
    told = [item["call_id"] for item in site.asked()[-1]["input"] if item.get("type") == "function_call_output"]
    assert told == ["Thre_0", "Thre_1", "Thre_2"]


def test_a_wake_up_that_comes_twice_finds_nothing_to_do(site: Site, start: Start) -> None:
    """CP26, T-24: a process dies before it gives its wake-up back; more of them change nothing."""
    start(AGENTSITE_BEAT_SECONDS="5", **killed_at(site, "before_ack"))
    prompt = ended(site, site.say())
    passes = site.folder / "passes"
    wait_for(lambda: "before_ack" in passes.read_text(), "the death", site)
    steps = Step.objects.filter(prompt=prompt).count()
    for _ in range(5):
        wakeup.wake()
    assert ended(site, site.say()).state == "completed"
    prompt.refresh_from_db()
    assert (Step.objects.filter(prompt=prompt).count(), prompt.fence, len(site.asked())) == (steps, 1, 2)


def test_a_turn_is_gone_on_with_within_45_seconds(site: Site, start: Start) -> None:
    """T-28: with the times that a site has when nobody sets them (lease 30 s, renewed every 5 s, swept every 10 s)."""
    real = {"AGENTSITE_LEASE_SECONDS": "30", "AGENTSITE_RENEW_SECONDS": "5", "AGENTSITE_SWEEP_SECONDS": "10"}
    start(**real)
    prompt = site.say("take your time")
    began(site)
    kill(site, drain_of(prompt), signal.SIGKILL)
    lost_at = time.monotonic()

    def taken_over() -> bool:
        prompt.refresh_from_db()
        return prompt.fence == 2

    wait_for(taken_over, "the takeover", site)
    took = time.monotonic() - lost_at
    print(f"crash to resumed: {took:.1f} s")  # noqa: T201 - the figure
    assert took <= 45
    assert ended(site, prompt).state == "completed"
