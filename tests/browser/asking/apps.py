"""Puts the programs in the place of the agent."""

from __future__ import annotations

from functools import cache

from django.apps import AppConfig

from agents import registry
from agents.engine import Action, Context, PolicyRegistry, Step, text


class AskingConfig(AppConfig):
    """A message names the program that it starts."""

    name = "tests.browser.asking"
    label = "asking"

    def ready(self) -> None:
        registry.policies = cache(lambda: PolicyRegistry({"agent": root}))


async def root(action: Action, ctx: Context) -> list[Step]:
    from tests.browser.asking.programs import PROGRAMS

    return [text("model", await PROGRAMS[action.payload["text"]](ctx))]
