"""Tests of single crash points, run by name and reported by number."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from tests.crash.points import TABLE

ROOT = Path(__file__).resolve().parents[2]


def run() -> bool:
    """Run them and print a table; return whether anything failed."""
    wanted = list(dict.fromkeys(test for shown in TABLE.values() for test in shown.tests))
    report = Path(os.environ["AGENTSITE_DATA"]) / "named.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--services", f"--junitxml={report}", *wanted]
    failed = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode != 0
    runs, bad = results(report.read_text())
    for cp, shown in TABLE.items():
        if shown.tests:
            counts = f"{sum(runs[test] for test in shown.tests):>6}{sum(bad[test] for test in shown.tests):>12}"
            sys.stdout.write(f"{cp:<6}{shown.what:<52}{counts}\n")
        elif shown.why_not:
            sys.stdout.write(f"{cp:<6}{shown.what:<52}  {shown.why_not}\n")
    return failed


def results(report: str) -> tuple[Counter[str], Counter[str]]:
    """Return how often each test ran, and how often it failed, by its name in the table."""
    runs, bad = Counter[str](), Counter[str]()
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name', '').partition('[')[0]}"
        for key in (name, name.partition("::")[0].rpartition("/")[0]):
            runs[key] += 1
            bad[key] += len(case.findall("failure") + case.findall("error"))
    return runs, bad
