"""The crash points by number: which tests cover each, or why none does."""

from __future__ import annotations

from dataclasses import dataclass

from agents.engine.paths import parent

POINTS = (
    "before_claim",
    "after_claim",
    "before_record",
    "before_commit",
    "after_commit",
    "before_effect",
    "after_content",
    "before_release",
    "draft",
)
"""The points at which the matrix kills, and stops, a worker: every pass of each."""


def crash_point(point: str, about: str, agent: str = "") -> str:
    """Return the number of one pass of the matrix. `about`: the steps of the record, as `path:type` with commas.

    `agent`: the path of the agent whose rounds these are.
    """
    steps = [step.rpartition(":")[::2] for step in about.split(",") if step]
    if point in _ALONE:
        return _ALONE[point]
    last_path, last_type = steps[-1]
    is_round = parent(last_path) == agent
    after = point == "after_commit"
    if ("", "action_result") in steps:
        return "CP27"
    if last_type == "pause" or any(path.endswith("/human") for path, _ in steps):
        return "CP12" if after else "CP11"
    if last_type == "action_start":
        return ("CP05" if is_round else "CP19") if after else ("CP04" if is_round else "CP18")
    if last_type == "action_result" and is_round:
        return "CP10" if after else "CP09"
    return "CP23" if after else "CP21"


_ALONE = {
    "before_claim": "CP03",
    "after_claim": "CP04",
    "before_effect": "CP19",
    "after_content": "CP22",
    "before_release": "CP26",
    "draft": "CP07",
}


@dataclass(frozen=True)
class Shown:
    """One crash point. It is covered by the `matrix`, by `tests` (as `file::test`), or not, and `why_not`."""

    what: str
    tests: tuple[str, ...] = ()
    matrix: bool = False
    why_not: str = ""


_PROCESSES, _WEB, _EFFECTS = (f"tests/crash/test_{name}.py" for name in ("processes", "web", "effects"))
_OUTAGES, _FULL = "tests/crash/test_outages.py", "tests/crash/test_full.py"
_STANDING = f"{_PROCESSES}::test_a_worker_that_stood_still_writes_nothing_any_more"

TABLE = {
    "CP01": Shown(
        "start: before its commit",
        (f"{_WEB}::test_a_message_whose_web_process_dies_is_sent_again_and_starts_one_turn",),
    ),
    "CP02": Shown(
        "start: after its commit", (f"{_WEB}::test_a_message_whose_web_process_dies_is_sent_again_and_starts_one_turn",)
    ),
    "CP03": Shown("before the claim", matrix=True),
    "CP04": Shown("after the claim, before the first step", matrix=True),
    "CP05": Shown("a round's start is recorded, nothing asked", matrix=True),
    "CP06": Shown(
        "the model was asked, nothing came", (f"{_EFFECTS}::test_a_worker_killed_before_the_first_byte_asks_once_more",)
    ),
    "CP07": Shown("in the middle of a text", matrix=True),
    "CP08": Shown("in the middle of a call's input", (f"{_EFFECTS}::test_a_call_that_was_cut_is_no_call",)),
    "CP09": Shown("an answer came, and is not recorded", matrix=True),
    "CP10": Shown("an answer is recorded", matrix=True),
    "CP11": Shown("gates, before they are recorded", matrix=True),
    "CP12": Shown("gates are recorded, nobody was told", matrix=True),
    "CP13": Shown(
        "decision: before its commit", (f"{_WEB}::test_a_decision_whose_process_dies_before_its_commit_was_never_made",)
    ),
    "CP14": Shown(
        "decision: after its commit",
        (f"{_PROCESSES}::test_a_decision_whose_process_dies_before_it_wakes_a_worker_is_found_by_a_drain",),
    ),
    "CP15": Shown(
        "decision: clicked again",
        (
            f"{_PROCESSES}::test_a_decision_whose_process_dies_before_it_wakes_a_worker_is_found_by_a_drain",
            "tests/conversations/approvals/test_decisions.py::test_the_same_person_again_gets_the_first_result",
        ),
    ),
    "CP16": Shown(
        "approve and reject at once",
        (
            f"{_WEB}::test_a_rejection_beside_an_approval_that_dies_is_the_one_decision",
            "tests/crash/test_race.py::test_twenty_decisions_from_two_web_processes_are_one",
        ),
    ),
    "CP17": Shown(
        "expiry beside a decision",
        ("tests/conversations/approvals/test_expiry.py::test_an_expired_gate_cannot_be_approved",),
    ),
    "CP18": Shown("a call's start, before it is recorded", matrix=True),
    "CP19": Shown("a call's start is recorded, nothing done", matrix=True),
    "CP20": Shown(
        "in the middle of an effect",
        (
            f"{_EFFECTS}::test_what_a_kill_in_the_middle_of_an_effect_leaves",
            f"{_EFFECTS}::test_a_killed_worker_leaves_no_command_behind",
            f"{_EFFECTS}::test_a_file_is_old_or_new_wherever_its_writer_dies",
            "tests/plugins/test_paths.py::test_what_is_being_written_is_in_no_listing",
        ),
    ),
    "CP21": Shown("an effect is done, and not recorded", matrix=True),
    "CP22": Shown(
        "a file's content is stored, its row is not",
        (f"{_EFFECTS}::test_a_content_that_was_never_recorded_is_swept",),
        matrix=True,
    ),
    "CP23": Shown("a call's result is recorded", matrix=True),
    "CP24": Shown(
        "two of three that run side by side have ended", (f"{_EFFECTS}::test_two_of_three_reads_keep_their_results",)
    ),
    "CP25": Shown(
        "the push is lost",
        ("tests/conversations/push/test_hints.py::test_pages_move_within_a_second_though_every_hint_is_lost",),
    ),
    "CP26": Shown(
        "before the prompt, or its wake-up, is given back",
        (f"{_EFFECTS}::test_a_wake_up_that_comes_twice_finds_nothing_to_do",),
        matrix=True,
    ),
    "CP27": Shown("the turn's end", matrix=True),
    "CP28": Shown(
        "in the middle of stopping", (f"{_WEB}::test_a_stop_whose_process_dies_before_its_commit_can_be_made_again",)
    ),
    "CP29": Shown(
        "the thread that keeps the leases; a loop that hangs",
        (
            f"{_OUTAGES}::test_a_loop_that_hangs_loses_its_turns",
            f"{_OUTAGES}::test_a_worker_may_die_while_it_renews",
            _STANDING,
        ),
    ),
    "CP30": Shown(
        "a deploy",
        tuple(
            f"{_PROCESSES}::test_sigterm_{name}"
            for name in (
                "lets_a_running_tool_end",
                "interrupts_a_tool_that_runs_too_long",
                "lets_the_model_say_its_answer_to_the_end",
            )
        ),
    ),
    "CP31": Shown(
        "two claim at once", (f"{_PROCESSES}::test_one_of_five_workers_that_wake_at_once_claims_the_prompt",)
    ),
    "CP32": Shown(
        "a trigger's slot",
        ("tests/crash/test_triggers.py::test_a_worker_killed_while_a_trigger_fires_starts_its_turn_once",),
    ),
    "CP33": Shown("ledgers of earlier versions", ("tests/ledgers",)),
    "CP34": Shown(
        "a full disk",
        (
            "tests/conversations/database/test_disk.py::test_a_worker_on_a_full_disk_keeps_the_answer_until_there_is_space",
            f"{_FULL}::test_a_process_that_may_write_no_more_loses_nothing",
        ),
    ),
    "CP35": Shown("cut database connections", (f"{_OUTAGES}::test_fifty_turns_end_while_connections_are_cut",)),
    "CP36": Shown("an emptied queue", (f"{_OUTAGES}::test_turns_end_while_the_queue_forgets_everything",)),
    "CP37": Shown("a worker's clock jumps", (f"{_OUTAGES}::test_workers_whose_clocks_are_hours_apart_claim_once",)),
    "CP38": Shown("a client of the passthrough goes away", ("tests/passthrough/test_leaving.py",)),
    "CP39": Shown(
        "a backup is restored",
        (
            "tests/conversations/backup/test_backup.py::test_what_was_approved_and_may_have_run_is_asked_about_and_runs_when_told",
        ),
    ),
    "CP40": Shown(
        "the power is cut",
        (
            "tests/conversations/database/test_sqlite.py::test_its_settings_hold_on_every_connection",
            "tests/crash/test_durable.py::test_a_commit_is_on_the_disk",
            "tests/crash/test_durable.py::test_no_site_starts_where_a_commit_may_be_lost",
            "tests/conversations/files/test_storage.py::test_a_content_is_on_the_disk_before_its_row_is_stored",
        ),
    ),
}
