"""The session in docs/api.md, run as written against a complete site."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agentsite.processes import ROOT, free_port, started, variables, wait_for

GUIDE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
needs = [tool for tool in ("bash", "curl", "jq") if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(needs), reason=f"not on this machine: {', '.join(needs)}")


def test_the_session_of_the_guide_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 10
    script = (
        "\n".join(blocks).replace(".venv/bin/python", sys.executable).replace("events.log", str(tmp_path / "events"))
    )
    log, port = tmp_path / "serve.log", free_port()
    address = f"http://127.0.0.1:{port}"
    environment = variables(tmp_path / "site", PORT=str(port), AGENTSITE_STOP_SECONDS="5", SITE=address)
    with started("manage.py", "serve", environment=environment, log=log) as process:
        wait_for(lambda: "Agentsite is running at http://" in log.read_text() or process.poll() is not None)
        shell = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(
            shell, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        process.terminate()
        process.wait(timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr + log.read_text()
    for words in (
        '"tool": "shell.run"',
        '"command": "ls -la"',
        '"approved"',
        "event: prompt.completed",
        '"cancelled"',
        '"continues": 4',
        '"state": "started"',
        "64",  # the length of a webhook's secret
    ):
        assert words in done.stdout, done.stdout
