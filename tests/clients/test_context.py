"""The command `llm` talks to the agent at `/context`, with nothing but a base URL and a key (S64)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.agentsite.processes import PATIENCE_SECONDS, wait_for
from tests.attacks.doors import Door, site
from tests.clients.conftest import Ended, ran
from tests.wire.script import Call, Reply
from tests.wire.server import WireServer

pytestmark = pytest.mark.clients
Run = Callable[..., Ended]
RUN = Reply("I will run it.", calls=(Call("shell_run", {"command": "echo hi"}),))
MODELS = """
- model_id: site
  model_name: normal
  api_base: {base_url}
  api_key_name: agentsite
"""


@pytest.fixture(scope="module")
def model() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory, model: WireServer) -> Iterator[Door]:
    """A site with a worker."""
    folder = tmp_path_factory.mktemp("agent")
    with site(folder, "manage.py", "serve", OPENAI_BASE_URL=model.url, OPENAI_API_KEY="-") as door:
        yield door


@pytest.fixture
def run(llm: Path, door: Door, tmp_path: Path) -> Run:
    """Runs `llm` with the model `site`, and these words."""
    models = MODELS.format(base_url=f"http://127.0.0.1:{door.port}/context")
    (tmp_path / "extra-openai-models.yaml").write_text(models, encoding="utf-8")
    (tmp_path / "keys.json").write_text(json.dumps({"agentsite": door.people["ann"].key}), encoding="utf-8")
    return lambda *words: ran(llm, "-m", "site", *words, home=tmp_path)


def api(door: Door, path: str, body: Any = None) -> Any:
    connection = HTTPConnection("127.0.0.1", door.port, timeout=PATIENCE_SECONDS)
    headers = {"Authorization": f"Bearer {door.people['ann'].key}", "Content-Type": "application/json"}
    connection.request("GET" if body is None else "POST", f"/api/{path}", body and json.dumps(body), headers)
    said = json.loads(connection.getresponse().read())
    connection.close()
    return said


def test_without_configuration(llm: Path, door: Door, model: WireServer, tmp_path: Path) -> None:
    model.script = [Reply("There are none.")]
    address = f"http://127.0.0.1:{door.port}/context"
    words = ("openai", "endpoint", address, "--key", door.people["bob"].key)
    assert ran(llm, *words, "--models", home=tmp_path).printed.split() == ["normal", "high"]
    asked = ran(llm, *words, "-m", "normal", "List the files.", home=tmp_path)
    assert asked == Ended(0, "There are none.\n", "")


@pytest.mark.parametrize("how", [(), ("--no-stream",)], ids=["streamed", "whole"])
def test_a_conversation_that_asks_for_approval_goes_on_in_its_place(
    run: Run, door: Door, model: WireServer, how: tuple[str, ...]
) -> None:
    model.requests.clear()
    model.script = [Reply("Hello."), RUN, Reply("It ran."), Reply("It printed hi."), Reply("Yes.")]
    assert run(*how, "Hi").printed == "Hello.\n"
    gate = run("-c", *how, "Run it").printed
    (place, approval), *_ = re.findall(r"/c/(\d+)/#a-(\d+)", gate)
    refused = run("-c", *how, "And?")
    assert refused.code != 0
    page = f"http://127.0.0.1:{door.port}/c/{place}/#a-{approval}"
    assert f"Decide it, or stop the turn: {page}" in refused.errors
    digest = api(door, f"approvals/{approval}/")["approval"]["digest"]
    api(door, f"approvals/{approval}/approve/", {"digest": digest})
    turns = f"conversations/{place}/prompts/"
    wait_for(lambda: api(door, turns)["results"][-1]["state"] == "completed")
    assert run("-c", *how, "What did it print?").printed == "It printed hi.\n"
    assert run("-c", *how, "Sure?").printed == "Yes.\n"
    said = [prompt["input"] for prompt in api(door, turns)["results"]]
    assert said == ["Hi", "Run it", "What did it print?", "Sure?"]
    last = json.dumps(model.requests[-1].body)
    assert last.count("It printed hi.") == last.count("Run it") == 1
