"""The pages of batches: a table is checked before anything starts, nothing is lost, and only its owner sees it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from conversations.models import Output, Prompt
from conversations.prompts import killswitch
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.workflows import batches, shop
from tests.workflows.batches import of, runs, stands
from workflows.batches.starting import stop_batch
from workflows.models import Batch, BatchLine, WorkflowSetting

pytestmark = pytest.mark.django_db
PAGE = "/workflows/shop.parcel/batch/"
GOOD = "item,days\npaper,3\npens,"
WRONG = "item,days\npaper,many\npens,2\nglue,99"


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with shop.installed(site, monkeypatch, workflows=batches.ALL):
        yield


@pytest.fixture
def browser(ann: User, client: Client) -> Client:
    client.force_login(ann)
    return client


def hidden(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    return found[1] if found else ""


def table_in(page: str) -> str:
    found = re.search(r'<textarea[^>]*name="table"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert found
    return found[1]


def checked(browser: Client, text: str, **more: Any) -> dict[str, str]:
    """Check a table; return what the page would send on."""
    page = browser.post(PAGE, {"table": text, "check": "1", **more}).text
    return {"table": table_in(page), "checked": hidden(page, "checked"), "key": hidden(page, "key")}


def test_from_the_form_to_the_table_and_its_template(browser: Client) -> None:
    assert reverse("workflow-batch", args=["shop.parcel"]) in browser.get("/workflows/shop.parcel/").text
    page = browser.get(PAGE).text
    assert "Days on the way" in page
    template = browser.get("/workflows/shop.parcel/batch/template.csv")
    assert template.content.decode("utf-8-sig") == "item,days,size,gift,labels,map:\n"
    assert "attachment" in template["Content-Disposition"]


def test_a_good_table_is_shown_and_starts_once_it_is_confirmed(browser: Client, site: Site) -> None:
    page = browser.post(PAGE, {"table": GOOD, "check": "1"})
    assert (page.status_code, Prompt.objects.count()) == (200, 0)
    assert "Start these 2 runs?" in page.text
    sent = checked(browser, GOOD)
    response = browser.post(PAGE, {**sent, "start": "1"})
    batch = Batch.objects.get()
    assert response["Location"] == batch.get_absolute_url()
    assert browser.post(PAGE, {**sent, "start": "1"})["Location"] == batch.get_absolute_url()
    assert Prompt.objects.count() == 2
    site.works()
    assert stands(batch) == ["completed"] * 2
    shown = browser.get(batch.get_absolute_url()).text
    assert "2 of 2 done" in shown
    assert "?v=" not in shown


def test_nothing_starts_while_one_line_is_wrong_and_the_text_stays(browser: Client) -> None:
    for action in ("check", "start"):
        page = browser.post(PAGE, {"table": WRONG, action: "1"})
        assert page.status_code == 400
        assert "Line 1, Days on the way: Enter a whole number." in page.text
        assert "Line 3, Days on the way: " in page.text
        assert table_in(page.text) == WRONG
    assert (Batch.objects.count(), Prompt.objects.count()) == (0, 0)


def test_the_wrong_lines_can_be_left_out_and_are_not_lost(browser: Client) -> None:
    page = browser.post(PAGE, {"table": WRONG, "leave_out": "1"}).text
    assert table_in(page) == "item,days\npens,2\n"
    left = re.search(r'name="left_out"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert left
    assert left[1] == "item,days\npaper,many\nglue,99\n"
    assert "Start this run?" in page


def test_of_a_line_that_is_left_out_no_cell_is_lost(browser: Client) -> None:
    text = "item,,Days on the way\npaper,,3\npens,beside,2\nglue,,1,IMPORTANT\nink,,many\n"
    page = browser.post(PAGE, {"table": text, "leave_out": "1"}).text
    assert table_in(page) == "item,days\npaper,3\n"
    left = re.search(r'name="left_out"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert left
    assert left[1] == "item,,Days on the way\npens,beside,2\nglue,,1,IMPORTANT\nink,,many\n"


def test_a_table_that_was_changed_after_its_check_does_not_start(browser: Client) -> None:
    sent = checked(browser, GOOD) | {"table": f"{GOOD}\nglass,1"}
    page = browser.post(PAGE, {**sent, "start": "1"})
    assert page.status_code == 409
    assert "changed after it was checked" in page.text
    assert not Batch.objects.exists()
    again = {"table": table_in(page.text), "checked": hidden(page.text, "checked"), "key": sent["key"]}
    assert browser.post(PAGE, {**again, "start": "1"}).status_code == 302


def test_the_same_form_with_other_lines_says_what_it_started_before(browser: Client) -> None:
    first = checked(browser, GOOD)
    browser.post(PAGE, {**first, "start": "1"})
    other = checked(browser, "item\npaper")
    page = browser.post(PAGE, {**other, "key": first["key"], "start": "1"})
    assert page.status_code == 409
    assert Batch.objects.get().get_absolute_url() in page.text
    assert hidden(page.text, "key") != first["key"]


@pytest.mark.parametrize(
    "content", [GOOD.encode(), b"\xef\xbb\xbf" + GOOD.encode(), GOOD.encode("utf-16"), "item\ncafé".encode("cp1252")]
)
def test_a_file_takes_the_place_of_the_text(content: bytes, browser: Client) -> None:
    page = browser.post(PAGE, {"table": "old", "check": "1", "file": SimpleUploadedFile("a.csv", content)})
    assert page.status_code == 200
    assert ("paper" in page.text) or ("café" in page.text)


@pytest.mark.parametrize("content", [b"\x00\x01\x02\x81", b"\xff\xfe\x00", b"a" * 900_000])
def test_a_file_that_is_no_table_leaves_the_text(content: bytes, browser: Client) -> None:
    page = browser.post(PAGE, {"table": GOOD, "check": "1", "file": SimpleUploadedFile("a.png", content)})
    assert page.status_code == 400
    assert table_in(page.text) == GOOD
    assert 'role="alert"' in page.text


@pytest.mark.parametrize("name", ["shop.key", "shop.clean", "shop.attended", "shop.fail"])
def test_a_workflow_that_takes_no_table_says_so(name: str, browser: Client) -> None:
    page = browser.get(f"/workflows/{name}/batch/")
    assert "cannot be run for each line" in page.text
    assert browser.post(f"/workflows/{name}/batch/", {"table": GOOD, "start": "1"}).status_code == 400
    assert reverse("workflow-batch", args=[name]) not in browser.get(f"/workflows/{name}/").text


def test_who_may_not_run_it_is_told(browser: Client) -> None:
    WorkflowSetting.objects.create(name="shop.parcel", enabled=False, list_to_others=True)
    sent = {"table": GOOD, "start": "1"}
    assert [browser.get(PAGE).status_code, browser.post(PAGE, sent).status_code] == [403, 403]
    WorkflowSetting.objects.update(list_to_others=False)
    assert [browser.get(PAGE).status_code, browser.post(PAGE, sent).status_code] == [404, 404]


def test_its_page_asks_again_only_for_what_changed(browser: Client, ann: User, site: Site) -> None:
    batch = of(ann, "gold", "paper")
    shown = browser.get(batch.get_absolute_url()).text
    asks = re.search(r'hx-get="([^"]+[?]v=[^"]+)"', shown)
    assert asks
    assert browser.get(asks[1], headers={"HX-Request": "true"}).status_code == 204
    site.works()
    page = browser.get(asks[1], headers={"HX-Request": "true"})
    assert page.status_code == 200
    assert "1 of 2 done, 1 waits for you" in page.text
    assert "<html" not in page.text


def test_its_page_says_why_its_lines_wait(browser: Client, ann: User) -> None:
    killswitch.turn_on(ann, "Something is <odd>.")
    batch = of(ann, "paper")
    page = browser.get(batch.get_absolute_url()).text
    assert "No line can start now." in page
    assert "Something is &lt;odd&gt;" in page


def test_it_can_be_stopped_in_two_ways(browser: Client, ann: User, site: Site) -> None:
    batch = of(ann, *["gold"] * 6)
    site.works()
    stop = reverse("batch-stop", args=[batch.pk])
    assert browser.post(stop)["Location"] == batch.get_absolute_url()
    assert stands(batch) == [*["waiting_for_approval"] * 5, "not_started"]
    page = browser.get(batch.get_absolute_url()).text
    assert "Stop the rest" not in page
    browser.post(stop, {"running": "1"})
    assert stands(batch) == [*["cancelled"] * 5, "not_started"]
    assert stop not in browser.get(batch.get_absolute_url()).text


def test_its_results_are_a_csv_without_formulas(browser: Client, ann: User, site: Site) -> None:
    batch = of(ann, "=1+1", "glass")
    site.works()
    content = browser.get(reverse("batch-results", args=[batch.pk])).content.decode("utf-8-sig")
    rows = list(csv.reader(StringIO(content)))
    assert rows[0] == ["line", "item", "state", "result", "reason"]
    assert rows[1] == ["1", "'=1+1", "completed", "Sent =1+1.", ""]
    assert rows[2][:4] == ["2", "glass", "failed", ""]
    assert "It broke." in rows[2][4]


def test_what_somebody_else_must_decide_does_not_wait_for_you(browser: Client, ann: User, site: Site) -> None:
    batch = of(ann, "gold", "gold")
    site.works()
    Output.objects.pending().filter(prompt=runs(batch)[0]).update(who="another")
    for address in (batch.get_absolute_url(), reverse("batches")):
        assert "0 of 2 done, 1 waits for you, 1 waits for somebody else" in browser.get(address).text
    ann.user_permissions.clear()
    ann.groups.clear()
    assert "0 of 2 done, 2 wait for somebody else" in browser.get(batch.get_absolute_url()).text


def test_one_that_has_ended_can_be_deleted_and_its_runs_stay(browser: Client, ann: User, site: Site) -> None:
    batch = of(ann, *["gold"] * 5, "a private thing")
    site.works()
    at = reverse("batch-delete", args=[batch.pk])
    assert at not in browser.get(batch.get_absolute_url()).text
    refused = browser.post(at)
    assert (refused.status_code, "Stop the batch first. Nothing was deleted." in refused.text) == (409, True)
    stop_batch(batch)
    assert browser.post(at).status_code == 409
    stop_batch(batch, running=True)
    assert at in browser.get(batch.get_absolute_url()).text
    assert "Delete this batch" in browser.get(at).text
    assert browser.post(at)["Location"] == reverse("batches")
    assert (Batch.objects.count(), BatchLine.objects.count(), Prompt.objects.count()) == (0, 0, 5)
    assert browser.post(at).status_code == 404


def test_nobody_sees_a_batch_of_somebody_else(browser: Client, ann: User) -> None:
    batch = of(person("bob"), "paper")
    for name in ("batch", "batch-results", "batch-delete"):
        assert browser.get(reverse(name, args=[batch.pk])).status_code == 404
    assert browser.post(reverse("batch-stop", args=[batch.pk])).status_code == 404
    assert browser.get("/workflows/batches/").context["rows"] == []
    assert batch.get_absolute_url() not in browser.get("/workflows/batches/").text


def test_the_list_counts_the_lines_of_each_batch(browser: Client, ann: User, site: Site) -> None:
    of(ann, "paper", "glass")
    site.works()
    of(ann, "pens")
    page = browser.get("/workflows/batches/").text
    assert "1 of 2 done, 1 failed" in page
    assert "0 of 1 done, 1 under way" in page
    assert "have not run anything" not in page


def test_a_run_of_a_batch_is_in_the_history_of_its_workflow(browser: Client, ann: User, site: Site) -> None:
    of(ann, "paper")
    site.works()
    assert "Sent paper." in browser.get("/workflows/shop.parcel/runs/").text


def test_a_batch_of_a_workflow_that_is_gone_is_still_shown(
    browser: Client, ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = of(ann, "paper")
    site.works()
    monkeypatch.setattr("workflows.discovery.installed", dict)
    assert "shop.parcel" in browser.get(batch.get_absolute_url()).text
    assert "Sent paper." in browser.get(reverse("batch-results", args=[batch.pk])).content.decode()
    assert browser.get("/workflows/batches/").status_code == 200
