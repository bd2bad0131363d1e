"""A form filled in from one text: what stood in it stays as it was, and nothing is called filled in that is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from pydantic import BaseModel

from conversations.models import PendingFile, Prompt
from tests.conversations.display.forms import Sent
from tests.workflows import shop
from tests.workflows.trips import Trips, text_of, trips
from workflows import Flow, UploadedFile, WorkspaceFolder, workflow

__all__ = ["trips"]  # a fixture

pytestmark = pytest.mark.django_db

MARKED = "Filled in from your description:"


class Row(BaseModel):
    name: str = "one"


class Report(BaseModel):
    title: str
    folder: WorkspaceFolder = "."
    extras: list[Literal["a", "b"]] = ["a"]
    rows: list[Row] = [Row()]
    labels: list[str] = ["p"]
    copies: int | None = 5
    by: Literal["post", "mail"] | None = "post"
    table: UploadedFile | None = None


@workflow("report.write", title="Write a report", category=shop.SHOP)
async def write(flow: Flow[Report]) -> str:
    """Writes a report."""
    return flow.input.title


@pytest.fixture(autouse=True)
def _installed(trips: Trips, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Iterator[None]:
    settings.MEDIA_ROOT = tmp_path / "files"
    with shop.registered(monkeypatch, write):
        yield


class Typed(Sent):
    """What a browser sends of what has a name; no file is chosen."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {"value": "", **dict(attrs)}
        if said.get("type") != "file" and ("name" in said or tag == "option"):
            super().handle_starttag(tag, [*said.items()])


def fills(trips: Trips, **typed: Any) -> str:
    """Fill in the form, in which this was typed before, and return the page."""
    return trips.fills("A report.", name="report.write", **typed)


def sent_by(trips: Trips) -> dict[str, str]:
    """What a browser sends of the form that was filled in last."""
    asked = Prompt.objects.filter(policy="form.fill").latest("pk")
    page = trips.client.get(reverse("workflow-filled", args=["report.write", asked.pk])).content.decode()
    return Typed(page[page.index('<form class="form"') :].partition("</form>")[0]).posted


def test_what_is_found_stands_in_a_field_of_a_path_too(trips: Trips) -> None:
    trips.finds(folder="reports/2026")
    page = fills(trips, **{"workspace-folder-1": "old"})
    assert 'value="reports/2026"' in page
    assert 'value="old"' not in page


def test_what_was_cleared_does_not_come_back(trips: Trips) -> None:
    trips.finds(title="Sales")
    fills(trips)
    whole = sent_by(trips)
    assert (whole["choices-2.0"], whole["rows-3"], whole["3.0.line-0"]) == ("1", "0", "one")
    trips.finds(title="Sales")
    fills(trips, **{"choices-2": "", "rows-3": ""})
    assert [name for name in sent_by(trips) if name.startswith(("choices-2.", "3."))] == []
    trips.finds(title="Sales")
    fills(trips, **{"choices-2": "", "rows-3": "0", "3.0.line-0": ""})
    assert sent_by(trips)["3.0.line-0"] == ""


def test_an_empty_text_is_no_value(trips: Trips) -> None:
    trips.finds(title="")
    page = fills(trips)
    assert MARKED not in page
    assert "No value for a field of this form was found in it." in page


def test_what_is_filled_in_is_passed_though_it_is_nothing(trips: Trips) -> None:
    """Null and the empty list are not what is left out, which has a default."""
    trips.finds(labels=[], copies=None, extras=[], rows=[], by=None)
    page = fills(trips, **{"lines-4": "mine"})
    named = page[page.index(MARKED) : page.index("Check it")]
    assert [name for name in ("Labels", "Copies", "Extras", "Rows", "By") if name not in named] == []
    assert "mine" not in page
    started = trips.client.post(reverse("workflow", args=["report.write"]), sent_by(trips) | {"line-0": "Sales"})
    assert started.status_code == 302
    run = Prompt.objects.get(policy="workflow:report.write")
    given = run.steps.get(path="", type="action_call").content["payload"]["input"]
    assert [given[name] for name in ("labels", "copies", "extras", "rows", "by")] == [[], None, [], [], None]


def test_a_file_that_was_chosen_before_stays(trips: Trips) -> None:
    trips.finds(title="Sales")
    page = fills(trips, **{"file-7-upload": SimpleUploadedFile("sales.csv", b"1,2", "text/csv")})
    assert "sales.csv" in page
    assert sent_by(trips)["file-7"] == PendingFile.objects.get().token


def test_a_file_that_is_refused_is_told_before_a_model_reads(trips: Trips) -> None:
    address = reverse("workflow-fill", args=["report.write"])
    file = SimpleUploadedFile("sales.csv", b"", "text/csv")
    answer = trips.client.post(address, {"key": "k", "description": "A report.", "file-7-upload": file})
    assert answer.status_code == 400
    assert "sales.csv is empty" in text_of(answer)
    assert "A report.</textarea>" in text_of(answer)
    assert not Prompt.objects.exists()
