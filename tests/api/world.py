"""A site with one of everything that belongs to Ann, and the clients that request its URLs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from agents.models import Blueprint, Skill, Suggestion, SystemPrompt
from agents.plugins.memory import keeping
from agents.plugins.triggers.schedule import Schedule
from conversations.accounts.keys import make_key
from conversations.display.rendering.diagrams import digest
from conversations.files.pending import keep
from conversations.files.uploads import Upload
from conversations.models import Erasure, File, Grant, Output, Payload, Prompt, Redaction, Step, Trigger, Verification
from conversations.notifications.webhooks import managing as webhooks
from conversations.prompts.listing import archive
from conversations.prompts.start import start_conversation
from conversations.triggers.hooks import secrets
from conversations.triggers.managing import NewTrigger, create
from tests.conversations.pages.files.filing import GIF, filed
from tests.conversations.support import Story, asking, says
from tests.conversations.triggers.hooking import hooked
from tests.workflows import shop
from workflows.models import Batch, BatchLine, WorkflowSetting
from workflows.running import start_filling

ROLES = ("anonymous", "owner", "other", "decider", "staff", "admin", "key")
"""Who comes: nobody; Ann; Bob; staff that may decide for others; staff that may nothing; the administrator; a program
with Bob's key, good for everything under /api/."""

DIAGRAM = "```mermaid\npie\n```"
HOOK = "https://1.1.1.1/hook"
TOGETHER = ("admin/conversations/approval/together/", "approvals/together/")


@dataclass
class World:
    """The objects. `waiting` is a turn that waits for a decision, `stopped` one that failed, `idle` an idle talk."""

    owner: User = field(default_factory=lambda: User.objects.create_user("ann"))
    people: dict[str, User] = field(default_factory=dict)

    def __post_init__(self) -> None:
        decider = User.objects.create_user("kim", is_staff=True)
        decider.user_permissions.add(Permission.objects.get(codename="decide_approval"))
        bob = User.objects.create_user("bob")
        self.people = {
            "owner": self.owner,
            "other": bob,
            "decider": decider,
            "staff": User.objects.create_user("stan", is_staff=True),
            "admin": User.objects.create_superuser("chief"),
        }
        self.key = make_key(bob, "a program", ["read", "chat", "decide", "workflows"])[1]
        self.waiting, self.gate = asking(self.owner, grantable="fields", schema="0" * 64, facts=[])
        self.grant = Grant.objects.create(
            user=self.owner, tool="shell.run", scope="exact", prompt=self.waiting.prompt, path="1/0"
        )
        self.memory = keeping.save(self.owner.pk, "I prefer tea, and biscuits.").memory
        daily = NewTrigger(Schedule("Europe/Berlin", expression="0 9 * * *"), "look at the logs")
        self.trigger = create(self.owner, daily)
        self.trigger.firings.create(state="missed", reason="All work was stopped.")
        self.hooked, _ = hooked(self.owner)
        Trigger.objects.filter(pk=self.hooked.pk).update(
            policy="workflow:shop.order", mapping={"item": {"value": "paper"}}
        )
        self.hook_secret, _ = secrets.add(self.hooked)
        self.unstarted = self.hooked.firings.create(state="failed", reason="The account was deactivated.")
        Payload.objects.create(firing=self.unstarted, media_type="application/json", content=b"{}", size=2)
        self.owner.user_permissions.add(Permission.objects.get(codename="have_webhook"))
        webhooks.make(HOOK, user=self.owner)
        self.webhook, _ = webhooks.make(HOOK)
        webhooks.send_test(self.webhook)
        questioning = Story(self.owner)
        self.question = questioning.asks_person("Which one?")
        questioning.pauses()
        failed = Story(self.owner)
        failed.ends("failed", "max_rounds", "Stopped after 10 rounds.")
        Prompt.objects.filter(pk=failed.prompt.pk).update(fence=1)  # as if a worker had begun it
        self.stopped = failed.prompt
        run = Story(self.owner)
        run.ends("failed", "error", "The shop is closed.")
        Prompt.objects.filter(pk=run.prompt.pk).update(policy="workflow:shop.order", fence=1)
        self.run = run.prompt
        self.description = start_filling(shop.order, self.owner, "Two pieces of paper.")
        self.workflow_setting = WorkflowSetting.objects.create(name="shop.order")
        self.batch = Batch.objects.create(user=self.owner, workflow="shop.order")
        BatchLine.objects.create(batch=self.batch, number=1, input='{"item": "paper"}', why_not="Stopped.")
        self.idle = start_conversation(self.owner, "Quiet")
        self.away = start_conversation(self.owner, "Put away")
        archive(self.away)
        self.file = File(
            conversation=self.idle,
            name="a.txt",
            media_type="text/plain",
            size=1,
            sha256=hashlib.sha256(b"a").hexdigest(),
        )
        self.file.content.save("a", ContentFile(b"a"))
        self.files = {
            "image/": filed(self.idle, "dot.gif", GIF),
            "frame/": filed(self.idle, "page.html", b"<p>Hi."),
            "files/<int:pk>/diagrams/": filed(self.idle, "plan.md", DIAGRAM.encode()),
        }
        drawing = Story(self.owner)
        drawing.asks_model()
        drawing.answers(says(DIAGRAM))
        drawing.ends()
        self.drawn = drawing.prompt
        self.upload = keep(self.owner, Upload.of(SimpleUploadedFile("b.txt", b"b")))
        self.models_key = make_key(self.owner, "models alone", ["passthrough"])[1]
        self.own_key = make_key(self.owner, "mine", ["read"])[0]
        self.system_prompt = SystemPrompt.create(name="Pirate", text="Arr.")
        self.system_prompt.write("Ahoy.", by=None)
        self.suggestion = Suggestion.objects.create(text="What is new?")
        self.blueprint = Blueprint.objects.create(name="b", when="w", text="t")
        self.skill = Skill.objects.create(name="s", description="d", body="b")
        self.group = Group.objects.get(name="Members")
        Erasure.objects.create(conversation_id=99, erased_by="chief", reason="Asked for.", steps=3)
        Redaction.objects.create(conversation=self.idle, seq=99, redacted_by="chief", reason="Asked for.")
        Verification.objects.create()

    def client(self, role: str) -> Client:
        """Return a browser or an API client of this role."""
        key = {"Authorization": f"Bearer {self.key}"} if role == "key" else {}
        client = Client(headers=key, raise_request_exception=True)
        if role in self.people:
            client.force_login(self.people[role])
        return client

    def address(self, route: str) -> str:
        """Return the URL of a route for Ann's objects."""
        filled = route.removeprefix("^").removesuffix("$")
        for place, pk in self._objects(route):
            filled = filled.replace(place, str(pk))
        named = re.sub(r"\^?\(\?P<\w+>(\w+)[^)]*\)", r"\1", filled)  # the first of the words that may stand there
        return f"/{named}?ids={self.gate.pk}" if route in TOGETHER else f"/{named}"

    def _objects(self, route: str) -> Iterator[tuple[str, object]]:
        model = re.match(r"admin/\w+/(\w+)/<path:object_id>", route)
        yield "<path:object_id>", self._row(model[1]) if model else 1
        yield "<id>", self.owner.pk
        yield "<path:content_type_id>", 1
        yield "<uidb64>", "MQ"
        yield "<token>", "none-such"
        yield "(?P<url>.*)", "nothing"
        yield "<str:name>", "shop.order"
        yield "<str:tool>", "shell.run"
        yield "<str:token>", self.upload.token
        yield "<str:digest>", digest("pie")
        yield "<path:name>", "dot.gif"
        yield "<int:pk>", self._place(route)
        yield "<int:firing>", self.unstarted.pk
        yield "<int:secret>", self.hook_secret.pk
        yield "<str:hook>", self.hooked.hook
        yield "<int:position>", Output.objects.get(prompt=self.stopped, type="text").position

    def _row(self, model: str) -> object:
        rows: dict[str, object] = {
            "approval": self.gate.pk,
            "output": self.gate.pk,
            "apikey": self.own_key.pk,
            "user": self.owner.pk,
            "group": self.group.pk,
            "conversation": self.idle.pk,
            "prompt": self.waiting.prompt.pk,
            "step": Step.objects.filter(prompt=self.waiting.prompt).order_by("seq")[0].pk,
            "file": self.file.pk,
            "erasure": Erasure.objects.get().pk,
            "redaction": Redaction.objects.get().pk,
            "verification": Verification.objects.get().pk,
            "blueprint": self.blueprint.pk,
            "skill": self.skill.pk,
            "suggestion": self.suggestion.pk,
            "systemprompt": self.system_prompt.pk,
            "workflowsetting": self.workflow_setting.pk,
            "trigger": self.trigger.pk,
            "webhook": self.webhook.pk,
            "delivery": self.webhook.deliveries.get().pk,
        }
        return rows[model]

    def _place(self, route: str) -> int:
        hooks = "triggers/" in route and any(part in route for part in ("firings/<", "secrets/", "mapping/"))
        return self.hooked.pk if hooks else self._other_place(route)

    def _other_place(self, route: str) -> int:
        if route.startswith("workflows/") and ("again" in route or "star" in route):
            return self.run.pk
        if "filled" in route:
            return self.description.pk
        if "batches/" in route:
            return self.batch.pk
        if "continue" in route or "again" in route or "texts/" in route:
            return self.stopped.pk
        if "put-back" in route:
            return self.away.pk
        places = {
            **{part: file.pk for part, file in self.files.items()},
            "system-prompts/<": self.system_prompt.pk,
            "prompts/<int:pk>/diagrams/": self.drawn.pk,
            "answer/": self.question.pk,
            "approvals/": self.gate.pk,
            "files/": self.file.pk,
            "prompts/<": self.waiting.prompt.pk,
            "decide/": self.waiting.conversation.pk,
            "step/<": Step.objects.filter(prompt=self.waiting.prompt).order_by("seq")[0].pk,
            "user/<": self.owner.pk,
            "systemprompt/<": self.system_prompt.pk,
            "keys/<": self.own_key.pk,
            "grants/<": self.grant.pk,
            "memory/<": self.memory.pk,
            "triggers/<": self.trigger.pk,
        }
        return next((pk for part, pk in places.items() if part in route), self.idle.pk)

    def body(self, route: str) -> dict[str, Any]:
        """Return the arguments of `Client.post` that would succeed there if allowed."""
        digest = {"digest": self.gate.digest}
        pk = self.gate.pk
        together = {"id": pk, f"decision_{pk}": "approve", f"digest_{pk}": self.gate.digest}
        sent: Any = {
            "c/": {"input": "Hi."},
            "c/<int:pk>/prompts/": {"input": "Hi."},
            "c/<int:pk>/rename/": {"title": "Loud"},
            "c/<int:pk>/system-prompt/": {"system_prompt": self.system_prompt.pk},
            "admin/agents/systemprompt/<int:pk>/versions/": {"opened": "2"},
            "approvals/<int:pk>/decide/": {"decision": "approve", **digest},
            "c/<int:pk>/decide/": together,
            **dict.fromkeys(TOGETHER, together),
            "approvals/<int:pk>/": {"decision": "approve", **digest},
            "account/webhook/": {"webhook-url": HOOK},
            "account/keys/": {"key-name": "CI", "key-scopes": ["read"]},
            "account/memory/": {"text": "I prefer tea."},
            "account/memory/<int:pk>/": {"text": "I prefer coffee."},
            "theme/": {"theme": "dark"},
            "triggers/": {"text": "look at the logs", "when": "daily", "time": "09:00", "zone": "UTC"},
            "triggers/<int:pk>/mapping/": {"source-item": "value", "typed-item": "paper", "sample": "{}"},
            "workflows/runs/<int:pk>/star/": {"starred": "1"},
            "workflows/<str:name>/star/": {"starred": "1"},
            "workflows/<str:name>/fill/": {"description": "Two pieces of paper."},
            "workflows/<str:name>/": {"line-0": "paper", "number-1": "2", "key": "once"},
            "workflows/<str:name>/batch/": {"table": "item\npaper", "check": "1"},
            "admin/conversations/approval/<path:object_id>/change/": {"decision": "approve", **digest},
            "admin/conversations/apikey/<path:object_id>/delete/": {"post": "yes"},
            "admin/conversations/killswitch/": {"turn": "on", "reason": "A test."},
            "api/triggers/": {"text": "look at the logs", "cron": "0 9 * * *"},
            "api/conversations/<int:pk>/prompts/": {"input": "Hi."},
            "api/workflows/<str:name>/run/": {"parameters": {"item": "paper"}},
            "api/workflows/<str:name>/batch/": {"lines": [{"item": "paper"}]},
            "api/approvals/<int:pk>/answer/": {"digest": self.question.digest, "answer": "The second."},
            "api/approvals/<int:pk>/approve/": digest,
            "api/approvals/<int:pk>/reject/": digest,
            "api/approvals/decide/": [{"id": self.gate.pk, "decision": "approve", **digest}],
        }.get(route, {})
        if route == "api/uploads/":
            return {"data": {"file": SimpleUploadedFile("c.txt", b"c")}}
        if route.startswith("api/"):
            return {"data": json.dumps(sent), "content_type": "application/json"}
        return {"data": sent}


def routes() -> list[str]:
    """Return every route of the site."""
    return list(_walk(get_resolver().url_patterns, ""))


def _walk(patterns: list[URLPattern | URLResolver], before: str) -> Iterator[str]:
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from _walk(pattern.url_patterns, route)


WRITES = re.compile(r'(?:INSERT INTO|UPDATE|DELETE FROM) "?((?:conversations|agents|auth|workflows)_\w+)')
USE = 'UPDATE "conversations_apikey" SET "used_at"'
"""Tables that any request with a key may write to: when it was last used."""


@contextmanager
def written() -> Iterator[list[str]]:
    """Return the tables of records, users and settings that are written to during a request."""
    tables: list[str] = []

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Mapping[str, Any]) -> Any:
        if (found := WRITES.match(sql)) and not sql.startswith(USE):
            tables.append(found[1])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        yield tables
