"""The scripts of the pages: they share one scope."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
FUNCTION = re.compile(r"(?:async )?(?:function\*?|class) (\w+)")
VARIABLES = re.compile(r"(?:let|const|var) (.*)")


def declared(script: str) -> set[str]:
    """The names that a script declares for all: they stand at the beginning of a line."""
    names = set[str]()
    for line in script.splitlines():
        if found := FUNCTION.match(line):
            names.add(found[1])
        elif found := VARIABLES.match(line.partition(" //")[0]):
            names.update(re.findall(r"(?:^|, )(\w+)(?= =|;|,|$)", found[1]))
            names.update(re.findall(r"\w+", found[1].partition("=")[0]) if found[1][0] in "[{" else ())
    return names


def test_no_two_scripts_declare_the_same_name() -> None:
    """Else a browser refuses the whole script that comes second, and nothing in it works."""
    scripts = sorted(path for app in ("conversations", "workflows") for path in (ROOT / app / "static").rglob("*.js"))
    where = defaultdict(list)
    for path in scripts:
        for name in declared(path.read_text(encoding="utf-8")):
            where[name].append(path.name)
    assert len(where) > 100
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}
