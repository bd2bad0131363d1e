"""What the pages name is there, and every setting is in the tables of `docs/settings.md` and in `.env.example`."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.core.management import get_commands

from agents.providers.demo.showing import SHOWN
from agents.providers.demo.understanding import understand
from agentsite.env import environment

ROOT = Path(__file__).resolve().parent.parent
PAGES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
TEXT = "\n".join(PAGES.values())
SETTINGS = ROOT / "docs" / "settings.md"
EXAMPLE = ROOT / ".env.example"
TESTS_ONLY = {"AGENTSITE_CRASH"}
APPS = ("agents", "agentsite", "bench", "conversations", "workflows")
ROOMS = [ROOT, *(file.parent for app in APPS for file in (ROOT / app).rglob("__init__.py"))]
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


def settings_in_tables() -> list[str]:
    cells = re.findall(r"^\| (`[^|]+`) \|", PAGES[SETTINGS], re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_the_tables_name_every_setting_once_and_no_other() -> None:
    assert sorted(settings_in_tables()) == sorted(settings_read())


def test_the_example_names_every_setting_and_no_other() -> None:
    names = re.findall(r"^(?:# )?([A-Z_]+)=", EXAMPLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(names) == sorted(settings_read() - {"AGENTSITE_ENV_FILE"})  # which names such a file


def test_the_example_can_be_read_with_every_line_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "all"
    file.write_text(re.sub(r"^# (?=[A-Z_]+=)", "", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    monkeypatch.setenv("AGENTSITE_ENV_FILE", str(file))
    assert environment().whole("AGENTSITE_MAX_ROUNDS", 0) == 10


def test_the_commands_of_the_pages_are_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^ {4})make ([\w-]+)", TEXT, re.MULTILINE)) <= targets
    assert set(re.findall(r"\bmanage\.py ([a-z_]+)", TEXT)) <= {"help", *get_commands()}
    assert [name for name in re.findall(r"python -m ([\w.]+)", TEXT) if find_spec(name) is None] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_leads_to_is_there(page: Path) -> None:
    """Links and pictures, with the headings that links name."""
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if not re.match(r"\w+:", target):
            path, _, heading = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), target
            assert not heading or heading in headings(file.read_text(encoding="utf-8")), target


def headings(text: str) -> set[str]:
    """As links name them."""
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each).strip().lower().replace(" ", "-") for each in found}


def test_the_requests_of_the_first_minute_are_understood() -> None:
    requests = re.findall(r"^> (.+)$", PAGES[ROOT / "docs" / "quickstart.md"], re.MULTILINE)
    assert requests[0] == "help"
    shown = [said for said in requests if any(each.pattern.fullmatch(said) for each in SHOWN)]
    assert [said for said in requests[1:] if said not in shown and not understand(said)] == []
    assert len(requests) > 8


def test_what_the_architecture_names_is_there() -> None:
    """In "The folders" each lower-case name is a module or a folder; so is each path on the whole page."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = text.partition("\n## The folders\n")[2].partition("\n## ")[0]
    paths = re.findall(r"`([a-z]\w+/[\w/.]+)`", text)
    named = {*re.findall(r"`([a-z_/.]+)`", folders), *paths} - {"openai", "/healthz"}
    missing = [name for name in named if not any((room / f"{name}{end}").exists() for room in ROOMS for end in ENDS)]
    assert missing == []
    assert len(named) > 60  # they are found at all


def test_the_architecture_lists_every_folder() -> None:
    """A folder of Python modules in workflows/, conversations/, agents/ or the engine has its row."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for above in ("workflows", "conversations", "agents", "agents/engine"):
        rows = text.partition(f"\n### `{above}/`\n")[2].partition("\n##")[0]
        there = {folder.parent.name for folder in (ROOT / above).glob("*/__init__.py")}
        assert {name for name in there if f"| `{name}/` |" not in rows} - {"migrations"} == set(), above


def test_what_the_page_of_promises_names_is_there() -> None:
    """Each sentence has a test, or a command that shows it."""
    lines = re.findall(r"^\| I(\d+) \|.*\|(.*)\|$", (ROOT / "docs" / "reliability.md").read_text(), re.MULTILINE)
    assert [int(number) for number, _ in lines] == list(range(1, 15))
    shown = {path for _, where in lines for path in re.findall(r"`([\w/]+\.py)`", where)}
    assert [path for path in shown if not (ROOT / path).is_file()] == []
