"""A program with pydantic-ai: `python height.py BASE_URL KEY chat|responses whole|streamed QUESTION`.

It runs an agent with one tool, and prints each piece of its answer as a line of JSON.
"""

import asyncio
import json
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

MODELS = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}


def height(place: str) -> int:
    """The height of a mountain, in metres."""
    return {"Zugspitze": 2962}[place]


def say(text: str) -> None:
    sys.stdout.write(f"{json.dumps(text)}\n")


async def main(base_url: str, key: str, api: str, how: str, question: str) -> None:
    model = MODELS[api]("small", provider=OpenAIProvider(base_url=base_url, api_key=key))
    agent = Agent(model, tools=[height])
    if how == "whole":
        say((await agent.run(question)).output)
        return
    async with agent.run_stream(question) as result:
        async for piece in result.stream_text(delta=True, debounce_by=None):
            say(piece)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
