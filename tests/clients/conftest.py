"""A site, the model server behind it, and the clients, which are installed once for all tests."""

import os
import subprocess
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.engine.ledger import JSON
from tests.attacks.doors import site
from tests.wire.server import WireServer

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
PROVIDER_KEY = "the-key-of-the-site"
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Served:
    """What a client is told: the address and a key. `model` is the server behind the site."""

    base_url: str
    key: str
    model: WireServer

    def asked(self) -> list[JSON]:
        """The bodies of all requests that the model server received, each of them with the site's own key."""
        assert {each.headers["authorization"] for each in self.model.requests} <= {f"Bearer {PROVIDER_KEY}"}
        return [each.body for each in self.model.requests]


def example(heading: str, language: str, served: Served) -> str:
    """The first example in this language below a heading of docs/clients.md, with the site's address and key."""
    below = PAGE.read_text(encoding="utf-8").partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    text = below.partition(f"```{language}\n")[2].partition("```")[0]
    assert "https://agents.example/v1" in text
    return text.replace("https://agents.example/v1", served.base_url).replace("agk_...", served.key)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with (
        WireServer() as model,
        site(tmp_path_factory.mktemp("site"), OPENAI_BASE_URL=model.url, OPENAI_API_KEY=PROVIDER_KEY) as door,
    ):
        yield Served(f"http://127.0.0.1:{door.port}/v1", door.people["ann"].key, model)


@pytest.fixture
def served(running: Served) -> Served:
    """The site, whose model server has forgotten all requests and has nothing to say."""
    running.model.requests.clear()
    running.model.script = []
    return running


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the clients' programs, in an environment of their own: one for all, which is there sooner."""
    folder = tmp_path_factory.mktemp("clients")
    venv.create(folder, with_pip=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"]
    done = subprocess.run(
        [folder / "bin" / "python", *install, REQUIREMENTS], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"The clients could not be installed, which needs a package index:\n{done.stderr}", pytrace=False)
    return folder / "bin"


@pytest.fixture(scope="session")
def llm(programs: Path) -> Path:
    """The program `llm`."""
    return programs / "llm"


@pytest.fixture(scope="session")
def pydantic_ai(programs: Path) -> Path:
    """A Python that has pydantic-ai."""
    return programs / "python"


@dataclass(frozen=True)
class Ended:
    """A client's process that has ended: its exit code, and what it printed."""

    code: int
    printed: str
    errors: str


def ran(*command: str | Path, home: Path) -> Ended:
    """Run a client to its end. Its settings and logs, if it keeps any, are in the folder `home`."""
    done = subprocess.run(
        [str(part) for part in command],
        env={"PATH": os.defpath, "HOME": str(home), "LLM_USER_PATH": str(home), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
