from pathlib import Path

import pytest

from agentsite.databases import direct_from_url, from_url, sqlite
from agentsite.env import ROOT
from agentsite.errors import CannotStart

FOLDER = Path("/data")


def test_it_is_sqlite_in_the_folder_by_default() -> None:
    database = from_url("", FOLDER)
    assert database["NAME"] == FOLDER / "agentsite.sqlite3"
    assert database["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_it_reads_a_path_of_sqlite() -> None:
    assert from_url("sqlite:////srv/a%20b.db", FOLDER)["NAME"] == Path("/srv/a b.db")
    assert from_url("sqlite:///x.db", FOLDER)["NAME"] == ROOT / "x.db"


def test_it_reads_every_part_of_postgresql() -> None:
    database = from_url("postgres://me:p%40ss@db.example:6432/site?sslmode=require", FOLDER)
    assert database["ENGINE"].endswith("postgresql")
    assert [database[key] for key in ("USER", "PASSWORD", "HOST", "PORT", "NAME")] == [
        "me",
        "p@ss",
        "db.example",
        "6432",
        "site",
    ]
    assert database["OPTIONS"]["sslmode"] == "require"


def test_nobody_on_postgresql_is_waited_for_for_ever() -> None:
    """Neither a server that does not answer, nor a session that hangs in a transaction, nor a lock."""
    options = from_url("postgres://db.example/site", FOLDER)["OPTIONS"]
    assert (options["connect_timeout"], options["tcp_user_timeout"]) == (10, 30_000)
    assert options["options"] == "-c idle_in_transaction_session_timeout=20s -c lock_timeout=25s"


def test_what_the_address_says_of_waiting_wins() -> None:
    """Behind all others, where the server takes the last; and a pooler that takes none gets none."""
    own = from_url("postgres://db.example/site?connect_timeout=3&options=-c%20lock_timeout%3D5s", FOLDER)["OPTIONS"]
    assert own["connect_timeout"] == "3"
    assert own["options"].endswith("-c lock_timeout=25s -c lock_timeout=5s")
    assert from_url("postgres://db.example/site?options=", FOLDER)["OPTIONS"]["options"] == ""


@pytest.mark.parametrize(
    "url", ["mysql://secret@h/x", "postgres://secret@h", "postgres://h:secret/x", "sqlite://", "secret"]
)
def test_it_refuses_the_rest_without_repeating_it(url: str) -> None:
    with pytest.raises(CannotStart, match="DATABASE_URL") as caught:
        from_url(url, FOLDER)
    assert "secret" not in str(caught.value)


def test_it_says_when_sqlite_is_too_old() -> None:
    with pytest.raises(CannotStart, match=r"SQLite is 3\.22\.0, but 3\.35\.0 or newer is needed"):
        sqlite(FOLDER / "x", version=(3, 22, 0))


def test_it_reads_the_address_past_a_pooler() -> None:
    pooler = from_url("postgres://me@pooler.example:6432/site", FOLDER)
    assert direct_from_url("", pooler) == {}
    direct = direct_from_url("postgres://me@db.example/site", pooler)
    assert (direct["HOST"], direct["PORT"]) == ("db.example", "")


def test_it_refuses_another_without_repeating_it() -> None:
    pooler = from_url("postgres://me@pooler.example:6432/site", FOLDER)
    for url in ("sqlite:///x.db", "secret", "postgres://h:secret/x"):
        with pytest.raises(CannotStart, match="DATABASE_DIRECT_URL is not valid") as caught:
            direct_from_url(url, pooler)
        assert "secret" not in str(caught.value)
    with pytest.raises(CannotStart, match="only for PostgreSQL"):
        direct_from_url("postgres://me@db.example/site", from_url("", FOLDER))
