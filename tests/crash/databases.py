"""Databases: a fresh one for each run, copied from a template that was migrated once."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connections

from agentsite.databases import from_url
from conversations.database import hints

SERVER = os.environ.get("POSTGRES", "postgres://postgres@127.0.0.1:5432/agentsite")
"""A PostgreSQL server and a user that may create databases."""


class Databases(Protocol):
    """A source of fresh databases, which are identified by URL."""

    def create(self, name: str) -> str:
        """Create a migrated database with one administrator."""
        ...

    def drop(self, url: str) -> None:
        """Delete a database."""
        ...

    def close(self) -> None:
        """Delete the template."""
        ...


class SQLite:
    """SQLite files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._template = self._file("template")
        _fill(self._url("template"))
        with closing(sqlite3.connect(self._template)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def create(self, name: str) -> str:
        shutil.copy(self._template, self._file(name))
        return self._url(name)

    def drop(self, url: str) -> None:
        """Do nothing: the whole folder is deleted at the end."""

    def close(self) -> None:
        """Do nothing: the whole folder is deleted at the end."""

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.sqlite3"

    def _url(self, name: str) -> str:
        return f"sqlite:///{self._file(name)}"


class PostgreSQL:
    """Databases on one server, with names that begin with `prefix`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._execute(f"CREATE DATABASE {self._name('template')}")
        _fill(self._url("template"))
        connections["default"].close()

    def create(self, name: str) -> str:
        self._execute(f"CREATE DATABASE {self._name(name)} TEMPLATE {self._name('template')}")
        return self._url(name)

    def drop(self, url: str) -> None:
        self._execute(f"DROP DATABASE {urlsplit(url).path.strip('/')} WITH (FORCE)")

    def close(self) -> None:
        self.drop(self._url("template"))

    def _name(self, name: str) -> str:
        return f"{self._prefix}_{name}".lower()

    def _url(self, name: str) -> str:
        return urlunsplit(urlsplit(SERVER)._replace(path=f"/{self._name(name)}"))

    @staticmethod
    def _execute(sql: str) -> None:
        with psycopg.connect(server(), autocommit=True) as connection:
            connection.execute(sql.encode())


def server() -> str:
    """Return the URL of the server's own database, from which others are created and watched."""
    return urlunsplit(urlsplit(SERVER)._replace(scheme="postgresql", path="/postgres"))


def databases(kind: str, folder: Path, name: str) -> Databases:
    """Return a source of databases of this kind: `sqlite` (in `folder`) or `postgres` (named after `name`)."""
    return SQLite(folder) if kind == "sqlite" else PostgreSQL(f"crash_{name}")


def use(url: str) -> None:
    """Connect this process to this database."""
    hints.flush()
    connections["default"].close()
    connections.settings["default"] = connections.configure_settings({"default": from_url(url, Path())})["default"]
    del connections["default"]


def _fill(url: str) -> None:
    use(url)
    call_command("migrate", verbosity=0)
    get_user_model().objects.create_superuser("admin", "", "-")
    connections["default"].close()
