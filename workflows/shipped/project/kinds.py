"""The kinds of projects that can be set up: small sets of files, kept in `kinds/`.

A file is called `<name>-tpl` there, so that no program takes it for one of Agentsite's own.
"""

from __future__ import annotations

import html
import keyword
import re
import sys
import unicodedata
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationInfo, field_validator

KINDS = Path(__file__).parent / "kinds"
ENDING = "-tpl"
PACKAGE = "PACKAGE"
"""The folder in a kind that gets the name of the Python package."""

FOLDER_MOST = 40
"""Maximum length of a project's folder, in characters."""
NAME = re.compile(r"[^\W\d_][\w .&'-]*")
FOLDER = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
FOLDER_RULE = f"lower-case letters a to z, digits, - and _, beginning with a letter, at most {FOLDER_MOST} characters"
NO_DESCRIPTION = "A new project. Say here what it is for."


class Project(BaseModel):
    """A project to set up."""

    name: str = Field(
        min_length=1,
        max_length=60,
        description="What it is called: letters, digits, spaces, and . & ' - _ in between. It begins with a letter.",
    )
    kind: Literal["python-package", "website"] = Field(
        "python-package", description="What is set up: a Python package with unit tests, or the pages of a website."
    )
    description: str = Field(
        "",
        max_length=500,
        description="What it is for, in a sentence or two. It becomes the beginning of the README.",
    )
    folder: str = Field(
        "",
        max_length=FOLDER_MOST,
        validate_default=True,
        description="The new folder in the workspace. Leave it empty to use the name: Corner Shop becomes corner-shop.",
    )

    @field_validator("name")
    @classmethod
    def _name_is_plain(cls, name: str) -> str:
        name = " ".join(name.split())
        if not NAME.fullmatch(name):
            raise ValueError("use letters, digits, spaces, and . & ' - _ only, and begin with a letter")
        return name

    @field_validator("description")
    @classmethod
    def _description_is_one_paragraph(cls, description: str) -> str:
        return " ".join(description.split())

    @field_validator("folder")
    @classmethod
    def _folder_is_safe(cls, folder: str, info: ValidationInfo) -> str:
        if "name" not in info.data:
            return folder  # what is wrong with the name is said there
        made = folder or _folder_of(info.data["name"])
        if not FOLDER.fullmatch(made):
            why = "use" if folder else "no folder can be made of this name; give one, of"
            raise ValueError(f"{why} {FOLDER_RULE}")
        if info.data.get("kind") == "python-package" and _is_taken(package := made.replace("-", "_")):
            raise ValueError(f"Python has something called {package!r} already, or needs the word; use another folder")
        return folder

    @property
    def place(self) -> str:
        """Its folder in the workspace."""
        return self.folder or _folder_of(self.name)

    @property
    def files(self) -> dict[str, str]:
        """The text of each of its files, by path in the workspace, in order."""
        return {f"{self.place}/{path}": text for path, text in sorted(self._files().items())}

    def _files(self) -> dict[str, str]:
        folder, package = KINDS / self.kind, self.place.replace("-", "_")
        values = {"name": self.name, "package": package, "description": self.description or NO_DESCRIPTION}
        found = {}
        for file in folder.rglob(f"*{ENDING}"):
            path = file.relative_to(folder).as_posix().removesuffix(ENDING)
            text = file.read_text(encoding="utf-8")
            for key, value in values.items():
                text = text.replace(f"{{{{ {key} }}}}", html.escape(value) if path.endswith(".html") else value)
            found[path.replace(PACKAGE, package)] = text
        return found


def _folder_of(name: str) -> str:
    """Return the folder of a project with this name: accents are left out, and whatever is no letter or digit joins."""
    plain = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    return "-".join(re.findall(r"[a-z0-9]+", plain.replace("'", "")))[:FOLDER_MOST].rstrip("-")


def _is_taken(package: str) -> bool:
    """Whether a Python package cannot have this name, or would hide one of Python's own from the tests beside it."""
    return keyword.iskeyword(package) or package in sys.stdlib_module_names or package == "tests"
