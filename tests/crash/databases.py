"""A fresh database for each run: a copy of one that was migrated once."""

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

SERVER = os.environ.get("POSTGRES", "postgres://postgres@127.0.0.1:5432/agentsite")
"""A PostgreSQL server and a user that may create databases."""


class Databases(Protocol):
    """Where fresh databases come from. Each is named by its address."""

    def create(self, name: str) -> str:
        """A migrated database with one administrator."""
        ...

    def drop(self, url: str) -> None:
        """Take it away."""
        ...

    def close(self) -> None:
        """Take the template away."""
        ...


class SQLite:
    """Files in a folder."""

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
        """The folder goes as a whole."""

    def close(self) -> None:
        """The folder goes as a whole."""

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.sqlite3"

    def _url(self, name: str) -> str:
        return f"sqlite:///{self._file(name)}"


class PostgreSQL:
    """Databases of one server, their names beginning with `prefix`."""

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
    """The address of the server's own database, from which others are made and watched."""
    return urlunsplit(urlsplit(SERVER)._replace(scheme="postgresql", path="/postgres"))


def databases(kind: str, folder: Path, name: str) -> Databases:
    """A source of databases of this kind: `sqlite` (in `folder`) or `postgres` (named after `name`)."""
    return SQLite(folder) if kind == "sqlite" else PostgreSQL(f"crash_{name}")


def use(url: str) -> None:
    """Make this process's connection one to this database."""
    connections["default"].close()
    connections.settings["default"] = connections.configure_settings({"default": from_url(url, Path())})["default"]
    del connections["default"]


def _fill(url: str) -> None:
    use(url)
    call_command("migrate", verbosity=0)
    get_user_model().objects.create_superuser("admin", "", "-")
    connections["default"].close()
