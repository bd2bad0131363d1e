"""The API does what its OpenAPI document says, whatever is sent: schemathesis tests every operation that it describes.

It asks a site of its own, over its socket, as a stranger, a member and an administrator: by the examples and the limits
of the document, at random, and along the links between operations. An answer fails with a status 500, one that the
document does not have, or a content that it does not describe; a request without a key must not be answered.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agentsite.processes import connect, free_port, run, started, variables
from tests.budget import share

SECONDS = 600
"""It takes less than a minute for each of them on a machine that does nothing else."""
LIMITS = {
    "AGENTSITE_API_REQUESTS": "1000000",
    "AGENTSITE_API_STARTS": "1000000",
    "AGENTSITE_PROMPTS_AT_ONCE": "100000",
}
PHASES = ("examples", "coverage", "fuzzing", "stateful")
WORLD = """
import json
from conversations.accounts.keys import make_key
from conversations.models import Scope
from tests.api.world import World

world = World()
people = {"member": world.owner, "staff": world.people["admin"]}
print(json.dumps({role: make_key(user, "fuzz", Scope.values)[1] for role, user in people.items()}))
"""
"""A site with one of everything that belongs to Ann, who is the member."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a site on which the demo model answers, and the keys of those who may use it."""
    environment = variables(tmp_path / "data", PORT=str(port := free_port()), **LIMITS)
    made = run("manage.py", "shell", "-v", "0", "-c", WORLD, environment=environment)
    assert made.returncode == 0, made.stderr
    with started("manage.py", "serve", environment=environment, log=tmp_path / "log"):
        connect(port).close()
        yield f"http://127.0.0.1:{port}", json.loads(made.stdout)


def fuzzed(address: str, document: Path, report: Path, *headers: str) -> dict[str, Any]:
    """Test the API as whoever sends these headers; return the report."""
    config = Path(__file__).with_name("schemathesis.toml")
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", config, "run", document, "--url", address]
    ended = subprocess.run(
        [
            *map(str, command),
            "--no-color",
            "--report-json-path",
            str(report),
            *(f"--header={each}" for each in headers),
        ],
        cwd=report.parent,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    return found


@pytest.mark.parametrize("role", share(["stranger", "member", "staff"], of=3))
def test_every_answer_is_as_the_document_says(site: tuple[str, dict[str, str]], tmp_path: Path, role: str) -> None:
    address, keys = site
    document = tmp_path / "openapi.json"
    printed = run("manage.py", "spectacular", "--format", "openapi-json", environment=variables(tmp_path / "document"))
    document.write_text(printed.stdout)
    headers = [f"Authorization: Bearer {keys[role]}"] if role in keys else []
    report = fuzzed(address, document, tmp_path / "report.json", *headers)
    assert report["operations"]["tested"] == report["operations"]["total"] > 0
    assert [report["phases"][phase]["status"] for phase in PHASES] == ["success"] * len(PHASES)
    accepted = [operation for operation, rates in report["valid_rates"].items() if _accepted(rates)]
    if role == "stranger":
        assert accepted == []  # what the document describes takes a key, or a session
    else:
        assert len(accepted) > len(report["valid_rates"]) / 2  # the tests reach further than refusals
        assert "POST /context/chat/completions" in accepted


def _accepted(rates: dict[str, dict[str, int]]) -> int:
    return sum(phase["accepted"] for phase in rates.values())
