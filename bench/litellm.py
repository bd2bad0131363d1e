"""LiteLLM's proxy, a model server that is not ours, in an environment of its own."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.processes import await_answer, logged

Model = dict[str, object]


def installed(folder: Path) -> Path:
    """Return the path of the program `litellm`, which is installed in a virtual environment in this folder if need be.

    Raises CalledProcessError if it cannot be installed.
    """
    program = folder / "bin" / "litellm"
    if not program.exists():
        print(f"Installing LiteLLM in {folder} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, "litellm[proxy]"], check=True)
    return program


def version(program: Path) -> str:
    """Return what the program says of its version."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return " ".join(said.split())


def new_key() -> str:
    """Return a master key for a proxy."""
    return f"sk-{secrets.token_hex(24)}"


def model(name: str, **parameters: object) -> Model:
    """Return a model as the proxy's configuration has it, with LiteLLM's own parameters."""
    return {"model_name": name, "litellm_params": parameters}


@contextmanager
def proxy(program: Path, folder: Path, port: int, key: str, models: Sequence[Model]) -> Iterator[int]:
    """The proxy on 127.0.0.1 with one worker, no telemetry and no database. Yields its process id.

    Its configuration and its log are written to the folder.
    """
    config = folder / "litellm.yaml"
    config.write_text(json.dumps({"model_list": models}))  # which is YAML too
    settings = {"LITELLM_MASTER_KEY": key, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    where = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    command = [str(program), *where, "--telemetry", "False", "--num_workers", "1"]
    with logged(command, folder / "litellm.log", settings) as pid:
        await_answer(f"http://127.0.0.1:{port}/health/liveliness")
        yield pid
