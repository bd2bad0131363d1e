"""What the people of the company start by name. None of it asks a model: pictures and tests show the site itself."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from agents.categories import PROJECTS
from agents.engine import ToolError
from tests.browser.screenshots.app.journeys import Choose, Journey
from workflows import Category, Flow, workflow

REPORTS = Category("company.reports", "Reports", "chart", 30)
SERVER = Category("company.server", "Server", "term", 40)


class Parcel(BaseModel):
    article: str = Field(min_length=2, description="As it is called on the shelf.")
    pieces: int = Field(default=1, ge=1, le=500)
    shop: Literal["Harbour", "Station"] = "Harbour"
    gift: bool = False
    labels: list[str] = Field(default=[], title="Labels on the box")


class Labels(BaseModel):
    article: str
    pieces: int = 1


class Month(BaseModel):
    month: str = Field(pattern=r"^\d{4}-\d{2}$", description="Such as 2025-10.")
    remind: bool = Field(default=True, title="Remind those who have not paid")


class Prices(BaseModel):
    first: str = Field(title="First list", description="A file in the workspace.")
    second: str = Field(title="Second list", description="A file in the workspace.")


class Folder(BaseModel):
    name: str


@workflow("parcel.send", title="Send a parcel", category=PROJECTS)
async def send(flow: Flow[Parcel]) -> dict[str, Any]:
    """Packs articles, prints the label, and orders a courier.

    The courier is ordered only once somebody approved the command. The label comes back as a file.
    """
    given = flow.input
    flow.progress(1, 3, "Packing")
    await flow.tool("files.list", path=".")
    flow.progress(2, 3, "Ordering a courier")
    await flow.tool("shell.run", command=f"echo courier for {given.pieces} {given.article}")
    flow.progress(3, 3, "Done")
    return {"article": given.article, "pieces": given.pieces, "collected": "tomorrow, 9:00"}


@workflow("project.archive", title="Archive a project", category=PROJECTS, workspace=True)
async def archive(flow: Flow[Folder]) -> str:
    """Packs the files of a project into one archive, and says how many there are."""
    await flow.tool("files.list", path=".")
    return f"Archived {flow.input.name}."


@workflow("labels.print", title="Print labels", category=SERVER)
async def print_labels(flow: Flow[Labels]) -> dict[str, Any]:
    """Prints a label for each piece. Many labels are printed at night."""
    given = flow.input
    if given.pieces > 500:
        raise ToolError("The printer takes 500 labels at most. Print them in parts.", "too_many")
    if given.pieces > 50:
        await flow.sleep(seconds=40_000)
    return {"printed": given.pieces, "printer": "Harbour"}


@workflow("month.close", title="Close the month", category=REPORTS, confirm=True)
async def close(flow: Flow[Month]) -> str:
    """Matches payments with invoices, and lists what does not fit."""
    raise ToolError(f"The bank has no statement for {flow.input.month} yet.", "no_statement")


@workflow("mail.sum", title="Summarise support mail", category=REPORTS)
async def sum_mail(flow: Flow[Any]) -> str:
    """Groups last week's mail by topic, with three examples each."""
    return "Eleven mails. Three need a person: two returns, and one address that the courier does not know."


@workflow("prices.compare", title="Compare two price lists", category=REPORTS, workspace=True)
async def compare(flow: Flow[Prices]) -> str:
    """Compares them line by line, with a file of the differences."""
    return f"{flow.input.first} and {flow.input.second} are the same."


@workflow("backup.check", title="Check the backups", category=SERVER)
async def check(flow: Flow[Any]) -> str:
    """Restores one file from each repository and compares it."""
    kept = await flow.ask("Which repository?", choices=["Nightly", "Weekly"])
    return f"The {kept.lower()} backup is whole."


@workflow("certificate.renew", title="Renew a certificate", category=SERVER, permission="auth.change_user")
async def renew(flow: Flow[Any]) -> None:
    """Orders, installs and tests it, then reloads the web server."""


@workflow("shelf.count", title="Count the shelves", category=Category("company.shelves", "Shelves", "box", 50))
async def count(flow: Flow[Any]) -> int:
    """Counts every shelf of both shops, and waits until the night for it."""
    await flow.sleep(seconds=40_000)
    return 412


@workflow("journey.plan", title="Plan a journey", category=PROJECTS, confirm=True)
async def plan(flow: Flow[Journey]) -> str:
    """Plans a journey with all that belongs to it, and says what it costs."""
    return f"{flow.input.title}: {flow.input.price}, {len(flow.input.stops)} stops, paid {flow.input.pay.kind}"


@workflow("journey.choose", title="Book a journey", category=PROJECTS)
async def choose(flow: Flow[Any]) -> str:
    """Asks which stops to book, and books them once somebody approved that."""
    found = await flow.ask(Choose)
    stops = [stop.model_dump() for stop in found.stops]
    return str(
        await flow.tool("journey.book", stops=stops, starts=str(found.meets.date()), note="A journey\n  to the sea.")
    )
