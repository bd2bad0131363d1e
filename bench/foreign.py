"""Compatibility: whole turns through a third-party model server, LiteLLM's proxy, in each protocol of the site.

    site ── Responses, Chat Completions, JSON over Chat ──▶ LiteLLM ──▶ its own mock, or the demo model

Install LiteLLM in an environment of its own, and give its program with `--litellm`:
`uv venv /tmp/litellm && uv pip install --python /tmp/litellm/bin/python 'litellm[proxy]'`.
It answers by itself if the site asks for the model `mock` (its `mock_response`, a stream that it makes of Chat
Completions) or `chat` (that mock itself). It passes requests for the model `demo` on: then it also parses and rewrites
calls, their results and an approval. Exits with 1 if a turn does not end as it should.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import litellm
from bench.processes import free_port, logged
from bench.visitor import Visitor, text_of, until

MOCK = "This answer is LiteLLM's own."
TURNS = (
    ("responses", "mock"),
    ("responses", "demo"),
    ("chat", "chat"),
    ("chat", "demo"),
    ("json", "demo"),
)
"""The protocols of the site, and the LiteLLM models that it asks."""

PASSWORD = secrets.token_urlsafe(12)


def main() -> None:
    """Run the turns and print the result of each."""
    parser = argparse.ArgumentParser(prog="python -m bench.foreign", description=__doc__.partition("\n")[0])
    parser.add_argument("--litellm", type=Path, required=True, help="the path of the program `litellm`")
    options = parser.parse_args()
    print(litellm.version(options.litellm))
    with (
        tempfile.TemporaryDirectory(prefix="agentsite-foreign-") as folder,
        _demo(Path(folder)) as demo,
        _litellm(options.litellm, Path(folder), demo) as (address, key),
    ):
        good = [_turn(Path(folder), address, key, api, model) for api, model in TURNS]
    sys.exit(0 if all(good) else 1)


def _turn(folder: Path, address: str, key: str, api: str, model: str) -> bool:
    """Run a turn with this model and protocol, approve its call and print the result. Returns whether it is right."""
    port = str(free_port())
    settings = {
        "AGENTSITE_DATA": str(folder / f"site-{api}-{model}"),
        "AGENTSITE_ENV_FILE": os.devnull,
        "PORT": port,
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_API_KEY": key,
        "AGENTSITE_MODEL_API": api,
        "AGENTSITE_MODEL_NORMAL": model,
        "AGENTSITE_MODEL_HIGH": model,
        "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
    }
    visitor = Visitor(f"http://127.0.0.1:{port}")
    with logged([sys.executable, "manage.py", "serve"], folder / f"serve-{api}-{model}.log", settings):
        until(visitor.answers)
        page = visitor.say(visitor.sign_in("admin", PASSWORD), "run echo through another server")
        turn = visitor.wait_for_turn(page)
        if turn["state"] == "waiting_for_approval":
            turn = visitor.wait_for_turn(visitor.approve(page))
        states = [(output["tool"], output["result"]["type"]) for output in turn["outputs"] if output["type"] == "tool"]
        came = f"{turn['state']} after {turn['rounds']} rounds, {states or 'no calls'}, usage {turn['usage']}"
        print(f"{api} {model}: {came}")
        print("    " + text_of(turn).replace("\n", "\n    "))
        if model != "demo":
            return bool(turn["state"] == "completed" and text_of(turn) == MOCK)
        return bool(turn["state"] == "completed" and states == [("shell.run", "success")])


@contextmanager
def _litellm(program: Path, folder: Path, demo: str) -> Iterator[tuple[str, str]]:
    """LiteLLM's proxy on this machine, with its own mock and the demo model: its address and its key."""
    port, key = free_port(), litellm.new_key()
    address = f"http://127.0.0.1:{port}"
    models = [
        # The mock of its Responses API does not stream (1.106.2 answers with an error of its own), that of its Chat
        # Completions does: its bridge from the one to the other makes the stream.
        litellm.model(
            "mock", model="hosted_vllm/chat", api_base=f"{address}/v1", api_key=key, use_chat_completions_api=True
        ),
        litellm.model("chat", model="openai/none", api_key="none", mock_response=MOCK),
        litellm.model("demo", model="openai/demo", api_base=f"{demo}/v1", api_key="demo"),
    ]
    with litellm.proxy(program, folder, port, key, models):
        yield address, key


@contextmanager
def _demo(folder: Path) -> Iterator[str]:
    """The demo model, behind the wire server's strict checks; its address."""
    port = folder / "port"
    command = [sys.executable, "-m", "tests.wire", "--port", "0", "--port-file", str(port)]
    with logged(command, folder / "demo.log", {}):
        until(port.exists)
        yield f"http://127.0.0.1:{port.read_text().strip()}"


if __name__ == "__main__":
    main()
