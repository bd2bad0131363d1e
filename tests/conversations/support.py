"""Stories: turns built step by step with the public functions, as a worker would record them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User

from agents.engine import paths
from agents.engine.execution.gates import gate_call
from agents.engine.ledger import JSON, Step, action_error, action_result, digest
from conversations.ledger.locked import locked_turn
from conversations.models import Conversation, Output, Prompt
from conversations.prompts.start import start_conversation, start_prompt

PASSWORD = "correct horse battery"
EXPIRES = "2099-01-01T00:00:00+00:00"


def person(name: str, *permissions: str, **more: Any) -> User:
    """Create a user with these extra permissions. Every new user may decide their own approvals."""
    user = User.objects.create_user(name, password=PASSWORD, **more)
    user.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
    return User.objects.get(pk=user.pk)  # permissions are cached on the instance


class Story:
    """One turn of a conversation, built round by round."""

    def __init__(self, owner: User, said: str = "Look around.", conversation: Conversation | None = None) -> None:
        self.conversation = conversation or start_conversation(owner)
        self.prompt = start_prompt(self.conversation, owner, said)
        self.round = 0
        self.calls = 0
        self.append(Step("worker:1", "action_start", {"attempt": 1, "fence": 1}))

    def append(self, *steps: Step) -> None:
        with locked_turn(self.prompt.pk) as turn:
            turn.append(steps)

    def asks_model(self, **more: JSON) -> None:
        """Begin the next round; `more` is said of its start."""
        self.round, self.calls = self.round + 1, 0
        path = str(self.round)
        self.append(
            Step("runtime", "action_call", {"policy": "model", "payload": {"round": self.round}}, path=path),
            Step("worker:1", "action_start", {"attempt": 1, **more}, path=path),
        )

    def answers(self, *said: Step, tokens: int = 0) -> None:
        """Record the model's answer: texts and the calls it asks for."""
        usage = {"input_tokens": tokens, "output_tokens": tokens}
        placed = [step if step.path else Step(step.actor, step.type, step.payload, str(self.round)) for step in said]
        self.append(*placed, Step("model", "action_result", {"usage": usage, "model": "demo"}, path=str(self.round)))

    def call(self, tool: str, **payload: JSON) -> Step:
        """Make a call to pass to `answers`."""
        path = f"{self.round}/{self.calls}"
        self.calls += 1
        return Step("model", "action_call", {"policy": tool, "payload": payload, "call_id": f"c{path}"}, path=path)

    def gate(self, call: Step, *, reason: str = "", risk: str = "high", kind: str = "approve", **more: Any) -> Output:
        """Ask a person about this call."""
        tool, payload = call.payload["policy"], call.payload["payload"]
        asked = {
            "ask": kind,
            "tool": tool,
            "input": payload,
            "reason": reason or f"Run: {payload.get('command', '')}",
            "risk": risk,
            "digest": digest([tool, payload]),
            "expires_at": EXPIRES,
        } | more
        self.append(gate_call(paths.card(call.path, 1) if kind == "interrupted" else paths.gate(call.path), asked))
        return Output.objects.get(prompt=self.prompt, path=call.path, tool=tool)

    def asks_person(self, question: str, **more: Any) -> Output:
        """Let the turn's program ask a person something, at the next path below its root."""
        self.round += 1
        asked = {
            "ask": "question",
            "question": question,
            "digest": digest([question, self.round]),
            "expires_at": EXPIRES,
        }
        self.append(gate_call(str(self.round), asked | more))
        return Output.objects.get(prompt=self.prompt, path=str(self.round))

    def pauses(self) -> None:
        """Pause the turn until somebody decides."""
        self.append(Step("runtime", "pause", {"pending_action_count": 1, "steps_used": 1, "steps_remaining": 9}))

    def begins(self, call: Step, attempt: int = 1) -> None:
        self.append(Step("worker:1", "action_start", {"attempt": attempt, "digest": "d"}, path=call.path))

    def comes_to(self, call: Step, output: JSON) -> None:
        done = action_result(f"tool:{call.payload['policy']}", output)
        self.append(Step(done.actor, done.type, done.payload, path=call.path))

    def fails(self, call: Step, code: str, message: str) -> None:
        failed = action_error("runtime", code, message)
        self.append(Step(failed.actor, failed.type, failed.payload, path=call.path))

    def emits(self, call: Step, kind: str, **data: JSON) -> None:
        self.append(Step(f"tool:{call.payload['policy']}", kind, data, path=call.path))

    def ends(self, state: str = "completed", stop_reason: str = "text", because: str = "") -> Prompt:
        """End the turn; `because` is the system's message about it."""
        last = [Step("system", "text", {"text": because, "role_hint": "system"})] if because else []
        usage = {"input_tokens": 0, "output_tokens": 0}
        self.append(
            *last, Step("runtime", "action_result", {"state": state, "stop_reason": stop_reason, "usage": usage})
        )
        self.prompt.refresh_from_db()
        return self.prompt


def says(text: str) -> Step:
    """Make a text of the model to pass to `Story.answers`."""
    return Step("model", "text", {"text": text})


def asking(owner: User, command: str = "ls -la", **more: Any) -> tuple[Story, Output]:
    """Make a turn that waits for a decision on one command; return it and the output with the gate."""
    story = Story(owner, "Run it now.")
    story.asks_model()
    call = story.call("shell.run", command=command)
    story.answers(call)
    output = story.gate(call, **more)
    story.pauses()
    return story, output


def interrupted(owner: User, command: str = "make deploy") -> tuple[Story, Output]:
    """Make a turn whose command was started and has no result."""
    story, output = asking(owner, command)
    call = Step("model", "action_call", {"policy": "shell.run", "payload": {"command": command}}, path=output.path)
    story.append(Step(f"user:{owner.pk}", "action_result", {"decision": "approve", "via": "page"}, output.gate_path))
    story.append(Step("runtime", "resume", {"resumed_reason": "all_actions_resolved", "steps_remaining": 9}))
    story.begins(call)
    output = story.gate(call, kind="interrupted", reason="The worker stopped before its result was recorded.")
    story.pauses()
    return story, output
