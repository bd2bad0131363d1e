"""`python -m tests.mutations`: remove each guard in a copy of the tree, and see a test turn red."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutations.cases import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "var", "__pycache__", ".*_cache", ".hypothesis")


def main() -> int:
    """Print a line for each; 1 where a test was red before, or all stayed green after."""
    with tempfile.TemporaryDirectory(prefix="agentsite-mutations-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=LEFT_OUT, symlinks=True)
        (tree / ".venv").symlink_to((ROOT / ".venv").resolve())
        every = sorted({test for mutation in MUTATIONS for test in mutation.tests})
        if red := first_red(tree, every):
            sys.stdout.write(f"red without any mutation: {red}\n")
            return 1
        survived = [mutation for mutation in MUTATIONS if not killed(tree, mutation)]
    sys.stdout.write(f"{len(MUTATIONS) - len(survived)} of {len(MUTATIONS)} mutations were noticed\n")
    return int(bool(survived))


def killed(tree: Path, mutation: Mutation) -> bool:
    """Whether a test noticed that the guard is gone. The tree is as before afterwards."""
    file, began = tree / mutation.file, time.monotonic()
    before = file.read_text()
    if before.count(mutation.old) != 1:
        sys.stdout.write(f"{mutation.what}: is not found once in {mutation.file}\n")
        return False
    file.write_text(before.replace(mutation.old, mutation.new))
    try:
        red = first_red(tree, mutation.tests)
    finally:
        file.write_text(before)
    seconds = time.monotonic() - began
    sys.stdout.write(f"{mutation.what}: {f'red: {red}' if red else 'SURVIVED'} ({seconds:.0f} s)\n")
    sys.stdout.flush()
    return bool(red)


def first_red(tree: Path, tests: list[str] | tuple[str, ...]) -> str:
    """The first of the tests that is red; "" where all are green."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {name: value for name, value in os.environ.items() if name != "AGENTSITE_DATA"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    red = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return red.group(1) if red else f"no test, but pytest: {done.stdout[-500:]}{done.stderr[-500:]}"


if __name__ == "__main__":
    sys.exit(main())
