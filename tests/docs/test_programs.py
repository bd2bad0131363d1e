"""What `docs/programs.md` shows works as it stands."""

from __future__ import annotations

import asyncio
import re
import runpy
from pathlib import Path

from tests.agentsite.processes import ROOT


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/programs.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "orders.py").write_text(block)
    program = runpy.run_path(str(tmp_path / "orders.py"))
    assert asyncio.run(program["main"]()) == ["ordered paper"]
