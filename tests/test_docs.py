"""What README and ARCHITECTURE name is there, and every setting is in the table and in `.env.example`."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.core.management import get_commands

from agentsite.env import environment

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / ".env.example"
TESTS_ONLY = {"AGENTSITE_CRASH"}
CONVERSATIONS = ("conversations", *(f"conversations/{room}" for room in ("pages", "push", "verification", "worker")))
ENDS = ("", ".py")


def settings_read() -> set[str]:
    """The variables that the site reads: `env.text("NAME")` and the like, and `os.environ.get("NAME")`."""
    found = set()
    for file in (file for room in ("agentsite", "conversations", "agents") for file in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case (
                    ast.Call(func=ast.Attribute(value=ast.Name("env")), args=[ast.Constant(str(name)), *_])
                    | ast.Call(
                        func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"),
                        args=[ast.Constant(str(name)), *_],
                    )
                ):
                    found.add(name)
    return found - TESTS_ONLY


def settings_in_readme() -> set[str]:
    table = README.partition("\n## Settings\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_the_readmes_table_names_every_setting_and_no_other() -> None:
    assert settings_in_readme() == settings_read()


def test_the_example_names_every_setting_and_no_other() -> None:
    names = re.findall(r"^(?:# )?([A-Z_]+)=", EXAMPLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(names) == sorted(settings_read() - {"AGENTSITE_ENV_FILE"})  # which names such a file


def test_the_example_can_be_read_with_every_line_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "all"
    file.write_text(re.sub(r"^# (?=[A-Z_]+=)", "", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    monkeypatch.setenv("AGENTSITE_ENV_FILE", str(file))
    assert environment().whole("AGENTSITE_MAX_ROUNDS", 0) == 10


def test_the_readmes_commands_are_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([\w-]+)", README)) <= targets
    assert set(re.findall(r"\bmanage\.py ([a-z_]+)", README)) <= {"help", *get_commands()}
    assert [name for name in re.findall(r"python -m ([\w.]+)", README) if find_spec(name) is None] == []


def test_what_the_architecture_names_is_there() -> None:
    """In "Who owns what" each lower-case name is a module or a folder, in "Where to look first" each path."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    owners = text.partition("\n## Who owns what\n")[2].partition("\n## ")[0]
    look = text.partition("\n## Where to look first\n")[2]
    named = {*re.findall(r"`([a-z_/.]+)`", owners), *re.findall(r"`(\w+/[\w/.]+)`", look)} - {"openai", "/healthz"}
    rooms = [ROOT / room for room in ("", "agents", "agents/engine", "agentsite", "bench", *CONVERSATIONS)]
    missing = [name for name in named if not any((room / f"{name}{end}").exists() for room in rooms for end in ENDS)]
    assert missing == []
    assert len(named) > 60  # they are found at all
