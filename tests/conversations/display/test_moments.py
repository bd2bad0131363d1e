"""A turn at any moment of it: over the API, and step by step on the inspector's page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.engine.outputs.timeline import Outputs
from conversations.accounts.keys import make_key
from conversations.display.moments import TurnMoment
from conversations.display.shapes.outputs import outputs_of
from conversations.display.shapes.record import Usage
from conversations.erasure.steps import redact
from conversations.ledger.reading import read_steps
from conversations.models import Prompt, Step
from tests.conversations.recorded import MIXED, ONE_GATE, Site
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db


@pytest.fixture
def prompt(ann: User, site: Site, client: Client) -> Prompt:
    client.force_login(ann)
    return site.ended(ann, *MIXED)


def at(client: Client, prompt: Prompt, seq: int | None = None) -> dict[str, Any]:
    answer = client.get(f"/api/prompts/{prompt.pk}/outputs/", {} if seq is None else {"at": seq})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_every_moment_is_the_fold_of_its_steps(client: Client, prompt: Prompt) -> None:
    """The same entries as the engine folds, and the last one is what the site stores."""
    steps = read_steps(prompt.conversation_id, prompt.pk)
    for count, step in enumerate(steps, 1):
        then, outputs = at(client, prompt, step.id), Outputs(steps[:count]).in_order()
        assert [(one["position"], one["type"]) for one in then["outputs"]] == [(o.position, o.type) for o in outputs]
        assert (then["at"], then["previous"]) == (step.id, steps[count - 2].id if count > 1 else None)
        assert then["next"] == (steps[count].id if count < len(steps) else None)
    now = at(client, prompt)
    assert now["outputs"] == [each.json_value() for each in outputs_of(prompt)]
    assert now["usage"] == Usage.of(prompt).json_value()
    assert (now["state"], now["stop_reason"], now["rounds"]) == ("completed", "text", 2)
    assert at(client, prompt, 10**9) == now


def test_a_moment_says_how_the_turn_stood(client: Client, ann: User, prompt: Prompt, site: Site) -> None:
    other = site.ended(ann, *ONE_GATE)
    seqs = {step.type: step.seq for step in Step.objects.filter(prompt=other, path="").order_by("seq")}
    before = at(client, other, seqs["action_call"])
    assert (before["state"], before["outputs"], before["usage"]["total_tokens"]) == ("queued", [], 0)
    paused = at(client, other, seqs["pause"])
    assert (paused["state"], paused["usage"]["total_tokens"]) == ("waiting_for_approval", 15)
    asked = paused["outputs"][1]
    assert (asked["result"]["type"], asked["approval"]["state"]) == ("pending", "pending")
    assert at(client, other, seqs["resume"])["outputs"][1]["approval"]["state"] == "approved"
    assert at(client, other, 0)["at"] == 0


def test_nobody_sees_anothers_and_nonsense_is_told(client: Client, bob: User, prompt: Prompt) -> None:
    key = make_key(bob, "bob's", ["read"], None)[1]
    asked = Client(headers={"Authorization": f"Bearer {key}"}).get(f"/api/prompts/{prompt.pk}/outputs/")
    assert asked.status_code == 404
    assert client.get(f"/api/prompts/{prompt.pk}/outputs/", {"at": "x"}).status_code == 400
    for wrong in ("x", "-1", "0", "9" * 30):
        assert client.get(f"/prompts/{prompt.pk}/", {"at": wrong}).status_code == 404
    client.force_login(bob)
    assert client.get(f"/prompts/{prompt.pk}/").status_code == 404


def test_the_page_steps_through_it(client: Client, prompt: Prompt) -> None:
    """Each step can be looked at, with what stood there; nothing can be decided on it."""
    seqs = [step.id for step in read_steps(prompt.conversation_id, prompt.pk)]
    page, walked = client.get(f"/prompts/{prompt.pk}/", {"at": seqs[0]}).text, [seqs[0]]
    assert "Nothing had happened yet." in page
    while found := re.search(r'rel="next" href="\?at=(\d+)"', page):
        walked.append(int(found[1]))
        page = client.get(f"/prompts/{prompt.pk}/", {"at": found[1]}).text
        assert "<form" not in page.split('class="stood"')[1].split("</section>")[0]
        assert page.count('aria-current="step"') == 1
    assert walked == seqs
    assert "Done." in page
    assert "Completed" in page


def test_the_page_shows_hostile_and_redacted_steps(client: Client, ann: User, site: Site) -> None:
    client.force_login(ann)
    prompt = site.ended(ann, says("<script>alert(1)</script>\u202e", call("fx.read", a=1)), says("Gone."))
    text = Step.objects.get(prompt=prompt, path="2", type="text")
    redact(prompt.conversation, [text.seq], ann, "")
    page = client.get(f"/prompts/{prompt.pk}/").text
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "Gone." not in page
    assert '<span class="badge">redacted</span>' in page
    assert "[redacted]" in page


def test_a_long_turn_is_listed_in_part(client: Client, ann: User, site: Site) -> None:
    many = [call("fx.read", a=n) for n in range(120)]
    client.force_login(ann)
    prompt = site.ended(ann, says("x", *many), says("Done."))
    middle = TurnMoment.of(prompt, 100).at
    page = client.get(f"/prompts/{prompt.pk}/", {"at": middle}).text
    assert page.count('class="seq num"') == 100
    assert 'aria-current="step"' in page
