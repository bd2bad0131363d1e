"""A site of its own for each run: database, folder, people, and its effects outside."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import User
from django.db import connection

from agents.engine.ledger import JSON
from agents.engine.root import AGENT
from agents.models import Blueprint
from agents.plugins.memory import keeping
from conversations.approvals.decisions import decide
from conversations.approvals.grants import Remember
from conversations.models import Output, Prompt
from conversations.prompts.start import start_conversation, start_prompt
from tests.crash import databases
from tests.crash.model import Model
from tests.crash.scenarios import Scenario
from tests.crash.settings import SETTINGS


@dataclass
class Site:
    """The site of one run. Its model has the same `name`, so that the server's log shows whose request is whose."""

    name: str
    folder: Path
    url: str
    model: Model

    @property
    def log(self) -> Path:
        """The log of its workers."""
        return self.folder / "log"

    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of its processes."""
        return {
            **os.environ,
            **SETTINGS,
            "AGENTSITE_WORKSPACES": str(self.folder / "workspaces"),
            "AGENTSITE_MODEL_NORMAL": self.name,
            "AGENTSITE_HOST": self.name,
            "CRASH_EFFECTS": str(self.folder / "effects"),
            "DATABASE_URL": self.url,
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": self.model.url,
            **more,
        }

    # People

    def person(self) -> User:
        return User.objects.get(username="admin")

    def say(self, text: str = "go") -> Prompt:
        """Start a conversation with this message."""
        person = self.person()
        return start_prompt(start_conversation(person), person, text)

    def start(self, scenario: Scenario) -> Prompt:
        """Start the turn of this scenario, in a conversation of its own, with what its agent is to know before."""
        person = self.person()
        for text in scenario.memories:
            keeping.save(person.pk, text, pinned=True)
        if scenario.blueprint:
            Blueprint.objects.create(**dict(zip(("name", "when", "text"), scenario.blueprint, strict=True)))
        if scenario.policy == AGENT:
            return self.say(scenario.message)
        return start_prompt(start_conversation(person), person, policy=scenario.policy, payload=dict(scenario.payload))

    def pending(self, prompt: Prompt) -> list[Output]:
        """Return the pending gates of the turn."""
        return list(Output.objects.filter(prompt=prompt).pending().order_by("position"))

    def decide(self, output: Output, decision: str, reason: str = "", remember: Remember | None = None) -> None:
        person = self.person()
        decide(output.pk, person, decision, digest=output.digest, via="api", reason=reason, remember=remember)

    def answer(self, output: Output, answer: JSON) -> None:
        decide(output.pk, self.person(), "answer", digest=output.digest, via="api", answer=answer)

    # Effects outside

    def effects(self) -> Counter[str]:
        """Return how often each call had its effect, by path; `fx.slow` counts `<path> began` and `<path> ended`."""
        files = [self.folder / "effects", *(self.folder / "workspaces").glob("*/effects")]
        return Counter(line for file in files if file.exists() for line in file.read_text().splitlines())

    def asked(self) -> list[JSON]:
        """Return the bodies of this site's requests to the model, without those whose sender was killed midway."""
        bodies = [json.loads(line)["body"] for line in self.model.log.read_text().splitlines()]
        return [body for body in bodies if body and body["model"] == self.name]


@contextmanager
def fresh(name: str, folder: Path, source: databases.Databases, model: Model) -> Iterator[Site]:
    """Yield a site with a new database, and connect this process to it for that time."""
    home = folder / name
    home.mkdir()
    (home / "workspaces").mkdir(mode=0o700)
    url = source.create(name)
    databases.use(url)
    try:
        yield Site(name, home, url, model)
    finally:
        connection.close()
        source.drop(url)
