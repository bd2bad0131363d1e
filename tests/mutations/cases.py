"""The guards that are removed, one at a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """`what` is taken away by writing `new` where `old` stands, once, in this file; one of the tests must notice."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


_RECORD = "tests/conversations"
_MACHINE = f"{_RECORD}/ledger/test_machine.py"
_LEASES = f"{_RECORD}/worker/test_leases.py"
_V1 = "agents/passthrough"

MUTATIONS = (
    Mutation(
        "the fence of a worker's record",
        "conversations/ledger/journal.py",
        'where += f" AND fence = %s AND lease_until > {now()}"',
        'where += " AND %s IS NOT NULL"',
        (f"{_RECORD}/ledger/test_append.py", f"{_RECORD}/ledger/test_claim.py", _MACHINE),
    ),
    Mutation(
        "the comparison of seq when a record takes its place",
        "conversations/ledger/journal.py",
        "WHERE id = %s AND seq = %s",
        "WHERE id = %s AND %s IS NOT NULL",
        (f"{_RECORD}/ledger/test_append.py", f"{_RECORD}/prompts/test_cancel.py", _MACHINE),
    ),
    Mutation(
        "the count of redactions, which empties the HTML cache",
        "conversations/display/html_cache.py",
        "(SELECT count(*) FROM conversations_redaction)",
        "0",
        (f"{_RECORD}/pages/test_rendered_once.py",),
    ),
    Mutation(
        "the digest of what was approved",
        "agents/engine/execution/effect.py",
        "if wanted not in (None, shown.digest):",
        "if wanted == '':",
        (
            "tests/engine/execution/test_gates.py",
            "tests/engine/execution/test_changes.py",
            "tests/conversations/approvals/test_changes.py",
        ),
    ),
    Mutation(
        "that an edit under four eyes asks somebody else",
        "conversations/approvals/decisions.py",
        'if gate is None or output.who != ANOTHER or "input" not in decided.payload:',
        "if gate is None or decided:",
        ("tests/attacks/test_four_eyes.py",),
    ),
    Mutation(
        "that a call which is running is not run again",
        "agents/engine/runtime/run.py",
        "if running := self._calls_running.get(path):",
        "if (running := self._calls_running.get(path)) and not path:",
        ("tests/engine/runtime/test_side_by_side.py",),
    ),
    Mutation(
        "that what a journal kept though it raised is not recorded twice",
        "agents/engine/runtime/recorder.py",
        "if step not in steps and not",
        "if steps is not None and not",
        ("tests/engine/runtime/test_unrecorded.py", f"{_RECORD}/worker/test_turn_kept.py"),
    ),
    Mutation(
        "that nothing is called after the end",
        "agents/engine/runtime/run.py",
        'if self.view.result(""):\n            raise RuntimeError',
        'if self.view.result("") and not path:\n            raise RuntimeError',
        ("tests/engine/runtime/test_side_by_side.py",),
    ),
    Mutation(
        "the copy that a policy is given",
        "agents/engine/runtime/policy.py",
        "return [replace(step) for step in answer]",
        "return answer",
        ("tests/engine/runtime/test_given.py",),
    ),
    Mutation(
        "the results of the calls that nobody ran",
        "agents/engine/runtime/run.py",
        "self.stage(*close_calls(self.view, *NOT_EXECUTED))",
        "_ = close_calls(self.view, *NOT_EXECUTED)",
        ("tests/engine/runtime/test_side_by_side.py",),
    ),
    Mutation(
        "the slot, when a worker claims",
        "conversations/ledger/claims.py",
        '" AND (active_prompt_id IS NULL OR active_prompt_id = %s)"',
        '" AND %s IS NOT NULL"',
        (f"{_RECORD}/prompts/test_slot.py", f"{_RECORD}/ledger/test_claim.py"),
    ),
    Mutation(
        "a suspect, tried apart from others",
        "conversations/ledger/claims.py",
        "- {PROVEN_SECONDS})) <= {PLACES})",
        "- {PROVEN_SECONDS})) <= 99)",
        (f"{_RECORD}/worker/test_suspects.py",),
    ),
    Mutation(
        "that giving up is tried beside others once",
        "conversations/ledger/claims.py",
        "OR {STRUCK} = {STRIKES} OR",
        "OR {STRUCK} >= {STRIKES} OR",
        (f"{_RECORD}/worker/test_given_up.py",),
    ),
    Mutation(
        "a database that was away, no strike",
        "conversations/worker/runner.py",
        "if not is_away(error):",
        "if error:",
        (f"{_RECORD}/worker/test_turn_kept.py",),
    ),
    Mutation(
        "a drain that died, noticed before its lease runs out",
        "conversations/worker/hosts.py",
        "lapse(worker)",
        "pass",
        (f"{_RECORD}/worker/test_parent.py",),
    ),
    Mutation(
        "that a process of another container is not looked for here",
        "conversations/worker/processes.py",
        "return namespace == _namespace() and",
        "return namespace != '' and",
        (f"{_RECORD}/worker/test_parent.py",),
    ),
    Mutation(
        "the slot, when a person speaks",
        "conversations/prompts/start.py",
        "raise TurnInProgress(conversation.active_prompt_id)",
        "pass",
        (f"{_RECORD}/prompts/test_slot.py", "tests/api/test_prompts.py"),
    ),
    Mutation(
        "the thread that renews the leases",
        "conversations/worker/leases.py",
        "kept = renew(held, settings.AGENTSITE_LEASE_SECONDS)",
        "kept = {claim.prompt for claim in held}",
        (_LEASES,),
    ),
    Mutation(
        "one result for each call, in the database",
        "conversations/migrations/0001_initial.py",
        'fields=("conversation", "prompt", "path"),\n                name="one_result"',
        'fields=("conversation", "prompt", "path", "seq"),\n                name="one_result"',
        (
            f"{_RECORD}/ledger/test_append.py",
            f"{_RECORD}/database/test_guard.py",
            f"{_RECORD}/verification/test_rules.py",
        ),
    ),
    Mutation(
        "the gate of a tool",
        "agents/engine/execution/effect.py",
        "if decision is None and not began:",
        "if began and not began:",
        ("tests/engine/execution/test_gates.py", "tests/engine/runtime/test_tool_policies.py"),
    ),
    Mutation(
        "the look at the lease before an effect",
        "agents/engine/execution/effect.py",
        "if not run.services.may_begin():",
        "if run is None:",
        (_LEASES,),
    ),
    Mutation(
        "the warning of a turn that was stopped",
        "agents/engine/agent/turn.py",
        'logger.warning("a turn was stopped: %s", code,',
        'logger.debug("a turn was stopped: %s", code,',
        ("tests/engine/agent/test_rounds.py",),
    ),
    Mutation(
        "the look for results before the calls of an answer are invoked",
        "agents/engine/runtime/decorators.py",
        "if call.path not in done:",
        "if call.path or done:",
        ("tests/engine/runtime/test_decorators.py",),
    ),
    Mutation(
        "the line about a call, made from its command or its address",
        "agents/engine/execution/gates.py",
        "if name in said:",
        "if name is None:",
        ("tests/engine/execution/test_gates.py",),
    ),
    Mutation(
        "the line about a call, made from its first text",
        "agents/engine/execution/gates.py",
        "next(iter(said.values()), NO_REASON)",
        "NO_REASON",
        ("tests/engine/execution/test_gates.py",),
    ),
    Mutation(
        "the order of a policy's ledger, when calls ran side by side",
        "agents/engine/view.py",
        "return list({step.id: step for step in steps}.values())",
        "return sorted({step.id: step for step in steps}.values(), key=lambda step: step.id)",
        ("tests/engine/runtime/test_as_designed.py",),
    ),
    Mutation(
        "how much of a lease must be left",
        "conversations/worker/leases.py",
        "time.monotonic() - renewed < settings.AGENTSITE_LEASE_SECONDS * 2 / 3",
        "time.monotonic() >= renewed",
        (_LEASES,),
    ),
    Mutation(
        "the user that a root worker runs commands as",
        "agents/plugins/shell/sandbox.py",
        "None if os.geteuid() else user",
        "None",
        ("tests/plugins/test_sandbox.py",),
    ),
    Mutation(
        "the system calls for keys, which no command has",
        "agents/plugins/shell/seccomp.py",
        "missing = [way.keyctl - 2, way.keyctl - 1, way.keyctl, *_IO_URING]",
        "missing = [way.keyctl - 2, way.keyctl - 1, *_IO_URING]",
        ("tests/attacks/test_sandbox.py",),
    ),
    Mutation(
        "the second kind of sandbox, where the first does not work",
        "agents/plugins/shell/probe.py",
        "if why_not == _BUSY:",
        "if why_not:",
        ("tests/plugins/test_sandbox.py",),
    ),
    Mutation(
        "the end of a request under /v1 whose client has left",
        f"{_V1}/exchange.py",
        "self.end(Left())",
        "pass",
        ("tests/passthrough/test_leaving.py",),
    ),
    Mutation(
        "the site's key in what the model server says",
        f"{_V1}/exchange.py",
        'plain.replace(key.encode(), b"[key]")',
        "plain",
        ("tests/passthrough/test_errors.py",),
    ),
    Mutation(
        "the refusal of a body with two models",
        f"{_V1}/body.py",
        "if known in found:",
        "if known in ():",
        ("tests/passthrough/test_bodies.py",),
    ),
    Mutation(
        "the end of a stream whose key was revoked",
        f"{_V1}/patrol.py",
        "one.end(refused)",
        "pass",
        ("tests/passthrough/test_leaving.py",),
    ),
    Mutation(
        "the scope of a key under /v1",
        "conversations/accounts/passthrough.py",
        "if not allows(key, Scope.PASSTHROUGH):",
        "if key is None:",
        ("tests/passthrough/test_keys.py",),
    ),
)
