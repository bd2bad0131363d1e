"""docs/clients.md names the versions that are tested."""

import re

import pytest

from tests.clients.conftest import PAGE, REQUIREMENTS


@pytest.mark.parametrize(("client", "package"), [("llm", "llm"), ("pydantic-ai", "pydantic-ai-slim")])
def test_the_page_names_the_version_that_is_tested(client: str, package: str) -> None:
    pinned = re.search(rf"^{package}==(.+)$", REQUIREMENTS.read_text(), re.MULTILINE)
    assert pinned
    assert f"\n| `{client}` | {pinned[1]} |" in PAGE.read_text(encoding="utf-8")
