"""Approvals in the admin: what is shown, who decides, and that nothing but what was shown is decided."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from conversations.approvals.decisions import decide
from conversations.models import GateState, Output, State, Step
from tests.conversations.support import Story, asking, interrupted, person

pytestmark = pytest.mark.django_db

LIST = "/admin/conversations/approval/"
NONE = ["999999", "x", "\u0661", str(2**63), "9" * 25, "9" * 5_000]
"""Names of rows that are none; SQLite takes no number of more than 64 bits, and Python none of so many digits."""


def address(output: Output) -> str:
    return f"{LIST}{output.pk}/change/"


def shown(client: Client, address: str = LIST) -> str:
    """Return a page without the colours of commands, and the boxes that hold each word of them together."""
    html = client.get(address).text
    for box in (r"c-\w+", "w"):
        html = re.sub(rf'<span class="{box}">([^<]*)</span>', r"\1", html)
    return html


@pytest.fixture
def owner() -> User:
    return person("anna", first_name="Anna")


@pytest.fixture
def chief(client: Client) -> User:
    user = person("chief", first_name="Mara", is_superuser=True, is_staff=True)
    client.force_login(user)
    return user


def fresh(output: Output) -> Output:
    return Output.objects.get(pk=output.pk)


def decisions() -> int:
    return Step.objects.filter(type="action_result", path__endswith="/human").count()


def test_only_staff_comes_in(client: Client, owner: User) -> None:
    _, output = asking(owner)
    for someone in (None, owner):
        if someone:
            client.force_login(someone)
        for page in (LIST, address(output), f"{LIST}together/?ids={output.pk}"):
            for response in (client.get(page), client.post(page, {"decision": "approve", "digest": output.digest})):
                if someone:
                    assert response.status_code == 403
                else:
                    assert response["Location"].startswith("/admin/login/?next=/admin/")
    assert fresh(output).gate == GateState.PENDING


def test_the_list_begins_with_what_waits(client: Client, owner: User, chief: User) -> None:
    _, decided = asking(owner, "echo decided")
    decide(decided.pk, chief, "reject", digest=decided.digest, via="admin")
    asking(owner, "echo first", reason="The reason.")
    asking(owner, "echo second\necho more")
    html = shown(client)
    assert html.index("echo first") < html.index("echo second")
    assert "echo decided" not in html
    for words in ("Run a command", "The reason.", "High risk", "Anna", "Waiting"):
        assert words in html
    assert "echo decided" in shown(client, f"{LIST}?state=rejected")
    everything = shown(client, f"{LIST}?state=all")
    assert everything.index("echo second") < everything.index("echo decided")
    assert "echo first" not in shown(client, f"{LIST}?risk=write")
    assert "echo first" in shown(client, f"{LIST}?q=reason")


@pytest.mark.parametrize("none", ["bogus", "", "PENDING", "1"])
def test_a_filter_takes_its_own_values_alone(client: Client, owner: User, chief: User, none: str) -> None:
    """Anything else is as if nothing had been asked for, the order too."""
    _, decided = asking(owner, "echo decided")
    decide(decided.pk, chief, "reject", digest=decided.digest, via="admin")
    asking(owner, "echo first")
    asking(owner, "echo second")
    for name in ("state", "risk"):
        html = shown(client, f"{LIST}?{name}={none}")
        assert "echo decided" not in html
        assert 0 < html.index("echo first") < html.index("echo second")
        assert client.get(f"{LIST}?{name}=%00").headers["Location"] == f"{LIST}?e=1"


def test_the_sidebar_counts_what_waits(client: Client, owner: User, chief: User) -> None:
    badge = r"Approvals</span>\s*<span[^>]*>\s*(\d+)"
    assert not re.search(badge, client.get("/admin/").text)
    asking(owner)
    asking(owner)
    found = re.search(badge, client.get("/admin/").text)
    assert found
    assert found[1] == "2"


def test_a_list_of_many_opens_with_few_queries(
    client: Client, owner: User, chief: User, django_assert_max_num_queries: object
) -> None:
    for _ in range(5):
        asking(owner)
    with django_assert_max_num_queries(9):  # type: ignore[operator]
        assert client.get(LIST).status_code == 200


def test_a_page_shows_the_call_whole(client: Client, owner: User, chief: User) -> None:
    command = "echo \u202e<b>safe</b>\u200b;" + " " * 5_000 + "rm -rf ~\n" + "\n".join(f"echo {n}" for n in range(900))
    _, output = asking(owner, command, reason="Harmless \u202e.", facts=["Not sandboxed: anything."])
    html = client.get(address(output)).text
    for words in (
        "U+202E",
        "U+200B",
        "5,000 blanks",
        "&lt;b&gt;safe&lt;/b&gt;",
        "Run it now.",
        "Not sandboxed",
        "899",
    ):
        assert words in html
    assert "\u202e" not in html
    assert f'name="digest" value="{output.digest}"' in html


@pytest.mark.parametrize(("decision", "gate"), [("approve", GateState.APPROVED), ("reject", GateState.REJECTED)])
def test_an_approval_is_decided(client: Client, owner: User, chief: User, decision: str, gate: str) -> None:
    story, output = asking(owner)
    said = {"decision": decision, "digest": output.digest, "reason": "Because <so>."}
    response = client.post(address(output), said, follow=True)
    decided = fresh(output)
    assert (decided.gate, decided.decided_by, decided.via) == (gate, f"user:{chief.pk}", "admin")
    assert decided.note == ("Because <so>." if decision == "reject" else "")
    assert f"{decided.get_gate_display()} by you: Run a command (ls -la)." in response.text
    story.prompt.refresh_from_db()
    assert story.prompt.state == State.RUNNING
    assert f"{decided.get_gate_display()} by you" in client.get(address(output)).text


def test_what_was_not_shown_is_not_decided(client: Client, owner: User, chief: User) -> None:
    _, output = asking(owner)
    for digest in ("", "0" * 64):
        response = client.post(address(output), {"decision": "approve", "digest": digest})
        assert response.status_code == 409
        assert "not what you were shown" in response.text
        assert "ls -la" in re.sub("<.*?>", "", response.text)
    assert fresh(output).gate == GateState.PENDING
    assert decisions() == 0


def test_a_second_decision_changes_nothing(client: Client, owner: User, chief: User) -> None:
    _, output = asking(owner)
    said = {"decision": "approve", "digest": output.digest}
    assert client.post(address(output), said).status_code == 302
    assert client.post(address(output), said).status_code == 302, "a double click by the same person"
    other = client.post(address(output), said | {"decision": "reject", "reason": "Too late."})
    assert other.status_code == 409
    assert "already approved" in other.text
    client.force_login(person("second", is_superuser=True, is_staff=True))
    assert client.post(address(output), said).status_code == 409
    assert decisions() == 1


def test_nothing_is_decided_by_looking(client: Client, owner: User, chief: User) -> None:
    _, output = asking(owner)
    for page in (address(output), f"{LIST}together/"):
        client.get(f"{page}?decision=approve&digest={output.digest}&ids={output.pk}&id={output.pk}")
        client.head(page)
    assert fresh(output).gate == GateState.PENDING


def test_what_comes_from_elsewhere_is_refused(owner: User, chief: User) -> None:
    _, output = asking(owner)
    client = Client(enforce_csrf_checks=True)
    client.force_login(chief)
    said = {"decision": "approve", "digest": output.digest, "id": output.pk, f"decision_{output.pk}": "approve"}
    for page in (address(output), f"{LIST}together/", LIST):
        assert client.post(page, said).status_code == 403
    assert fresh(output).gate == GateState.PENDING


def test_staff_without_the_permission_is_not_shown_what_others_ask(client: Client, owner: User) -> None:
    """Neither in the list nor by its address; whoever decides for others is shown all (I11)."""
    _, output = asking(owner, reason="To see what is there.")
    client.force_login(person("staff", is_staff=True))
    assert output.reason not in client.get(LIST).text
    assert client.get(address(output)).status_code == 404
    assert client.post(address(output), {"decision": "approve", "digest": output.digest}).status_code == 404
    assert fresh(output).gate == GateState.PENDING
    client.force_login(person("other", "decide_approval", is_staff=True))
    assert output.reason in client.get(LIST).text
    assert client.post(address(output), {"decision": "approve", "digest": output.digest}).status_code == 302


def test_who_may_not_decide_their_own_may_look_only(client: Client) -> None:
    staff = person("staff", is_staff=True)
    staff.groups.clear()
    _, output = asking(staff)
    client.force_login(staff)
    html = client.get(address(output)).text
    assert "Nobody can decide this yet" in html
    assert 'name="decision"' not in html
    assert client.post(address(output), {"decision": "approve", "digest": output.digest}).status_code == 403


def test_staff_decides_its_own_by_the_default_group(client: Client) -> None:
    staff = person("staff", is_staff=True)
    _, output = asking(staff)
    client.force_login(staff)
    assert client.post(address(output), {"decision": "reject", "digest": output.digest}).status_code == 302
    assert fresh(output).gate == GateState.REJECTED


@pytest.mark.parametrize("decision", ["", "it_ran", "nonsense"])
def test_an_answer_that_is_none_decides_nothing(client: Client, owner: User, chief: User, decision: str) -> None:
    _, output = asking(owner)
    assert client.post(address(output), {"decision": decision, "digest": output.digest}).status_code == 400
    assert fresh(output).gate == GateState.PENDING


@pytest.mark.parametrize(
    ("decision", "gate"),
    [("it_ran", GateState.ANSWERED), ("it_did_not", GateState.ANSWERED), ("run_again", GateState.APPROVED)],
)
def test_an_interrupted_call_is_answered(client: Client, owner: User, chief: User, decision: str, gate: str) -> None:
    _, output = interrupted(owner)
    html = client.get(address(output)).text
    for words in (
        "It ran",
        "It did not run",
        "Run again",
        "Nothing is run again automatically.",
        "It started",
        "a new approval",
    ):
        assert words in html
    assert client.post(address(output), {"decision": "approve", "digest": output.digest}).status_code == 400
    assert client.post(address(output), {"decision": decision, "digest": output.digest}).status_code == 302
    assert fresh(output).gate == gate


def test_what_is_no_approval_is_not_found(client: Client, owner: User, chief: User) -> None:
    """R24: only its owner is told that nobody was asked; a permission to decide is none to read."""
    story = Story(owner)
    story.asks_model()
    call = story.call("files.list", path=".")
    story.answers(call)
    output = Output.objects.get(path=call.path)
    for page in (address(output), *(f"{LIST}{none}/change/" for none in NONE)):
        assert client.get(page).status_code == 404
    for none in NONE:
        assert client.post(f"{LIST}{none}/change/", {"decision": "approve"}).status_code in (400, 404)
    sent = {"decision": "approve", "digest": output.digest}
    together = {"id": output.pk, f"decision_{output.pk}": "approve", f"digest_{output.pk}": output.digest}
    for other in (chief, person("dora", "decide_approval", is_staff=True), person("stan", is_staff=True)):
        client.force_login(other)
        assert client.post(address(output), sent).status_code == 404
        several = client.post(f"{LIST}together/", together)
        assert several.status_code == 409
        assert f"Approval {output.pk}: This approval does not exist, or you may not see it." in several.text
        assert "nobody was asked" not in several.text
    User.objects.filter(pk=owner.pk).update(is_staff=True)
    client.force_login(owner)
    for refused in (client.post(address(output), sent), client.post(f"{LIST}together/", together)):
        assert refused.status_code == 409
        assert "Nothing was changed, because nobody was asked to decide this." in refused.text
    assert decisions() == 0


def test_approvals_are_not_added_or_deleted(client: Client, owner: User, chief: User) -> None:
    _, output = asking(owner)
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}{output.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("number", NONE)
def test_rows_that_are_none_can_be_named_in_a_list(client: Client, chief: User, number: str) -> None:
    for table in (LIST, "/admin/conversations/prompt/", "/admin/auth/user/", "/admin/agents/systemprompt/"):
        assert client.get(table, {"id__in": number}).status_code in (200, 302)
        for action in ("decide_together", "delete_selected"):
            said = client.post(table, {"action": action, "_selected_action": [number]})
            assert said.status_code in (200, 302, 400)
