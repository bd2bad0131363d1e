from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentsite.data import prepare, secret_key
from agentsite.errors import CannotStart


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_it_makes_three_siblings_that_only_the_owner_enters(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "var")
    assert {folder.private.name, folder.files.name, folder.workspaces.name} == {"data", "files", "workspaces"}
    for path in (tmp_path / "var", folder.private, folder.files, folder.workspaces):
        assert mode(path) == 0o700


def test_it_closes_what_stood_open_and_leaves_a_foreign_folder_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    prepare(tmp_path)
    assert mode(tmp_path / "data") == 0o700
    assert mode(tmp_path) == 0o755


@pytest.mark.parametrize("inside", ["data", "data/w", "."])
def test_it_refuses_workspaces_that_hold_or_lie_in_database_and_key(inside: str, tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="AGENTSITE_WORKSPACES"):
        prepare(tmp_path, tmp_path / inside)


def test_it_says_which_folder_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotStart, match=r"file/var cannot be written .*AGENTSITE_DATA"):
        prepare(tmp_path / "file" / "var")


def test_it_makes_one_key_for_all_who_ask_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(secret_key, [tmp_path] * 32))
    assert len(keys) == 1
    assert len(keys.pop()) >= 50
    assert mode(tmp_path / "secret.key") == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret.key"]
