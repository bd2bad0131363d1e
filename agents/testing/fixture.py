"""The fixture for pytest. It is found by `pytest_plugins = ["agents.testing"]`."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.testing.services import TrialServices
from agents.testing.starting import Trials


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    """Trials that share a workspace in `tmp_path`."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Trials(TrialServices(folder=workspace))
