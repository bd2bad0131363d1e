"""The demo model behind `/v1`, as on a site where no model is set up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from tests.passthrough.site import Leg, running
from tests.wire.server import WireServer

HELP: list[Any] = [{"role": "user", "content": "help"}]


def said(leg: Leg) -> list[Any]:
    """What the demo model says to all it knows, and to what it does not."""
    with leg.sdk() as client:
        chat = client.chat.completions.create(model="demo", messages=HELP).choices[0].message
        stream = client.chat.completions.create(model="demo", messages=HELP, stream=True)
        response = client.responses.create(model="demo", input="help")
        errors = []
        for ask in (
            lambda: client.embeddings.create(model="demo", input="x"),
            lambda: client.completions.create(model="demo", prompt="x"),
            lambda: client.models.retrieve("other"),
        ):
            with pytest.raises(openai.NotFoundError) as missing:
                ask()
            errors.append(missing.value.body)
        return [
            [model.model_dump() for model in client.models.list()],
            client.models.retrieve("demo").model_dump(),
            chat.content,
            "".join(event.choices[0].delta.content or "" for event in stream if event.choices),
            response.output_text,
            errors,
        ]


def test_the_demo_model_answers_any_client(tmp_path: Path) -> None:
    """As it does without the site; what it cannot do, it says in the provider's shape."""
    with WireServer() as wire, running(tmp_path, wire.url) as site:
        direct, through = said(Leg("direct", wire.url, "sk-x")), said(site.leg())
    assert direct == through
    assert [model["id"] for model in through[0]] == ["demo"]
    assert through[2] == through[3] == through[4] != ""
    assert "no embeddings" in str(through[5][0])
