"""The print view: a conversation as a document, with all that the export has and nothing to press."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from agents.engine.ledger import Step
from agents.engine.schema import schema_digest
from agents.plugins.shell.tools import run
from conversations.approvals.decisions import decide
from conversations.display.faithful import plain
from conversations.erasure.steps import redact
from conversations.models import Conversation, File, Prompt
from conversations.models import Step as StoredStep
from conversations.pages.printing.views import TURNS_MOST
from conversations.prompts.listing import rename
from conversations.prompts.start import continue_prompt, repeat_prompt
from tests.conversations.questions import asked
from tests.conversations.recorded import Site
from tests.conversations.support import Story, asking, interrupted, person, says
from tests.engine.support import digest_of, shown_of

pytestmark = pytest.mark.django_db

ANSWER = """# Found

See [the *handbook*](https://docs.example/locks?a=1&b=2), <https://docs.example/> and [it](https://docs.example/locks?a=1&b=2).

| a | b |
|---|---|
| 1 | 2 |

```python
print("here")
```

<script>alert(1)</script> ![a](https://elsewhere.example/a.png)
"""


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna", first_name="Anna", last_name="Keller")
    client.force_login(user)
    return user


def printed(client: Client, conversation: Conversation, part: str = "") -> str:
    """The HTML of the document."""
    answer = client.get(f"/c/{conversation.pk}/print/{part}")
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", answer.text)


def words(html: str) -> str:
    """What is read of it."""
    return " ".join(re.sub("<[^>]*>", " ", html.partition('<main class="document">')[2]).split())


def everything(owner: User) -> Conversation:
    """A conversation with one of each thing that may happen."""
    story = Story(owner, "Please look.\nAnd tell.")
    given = File(
        conversation=story.conversation, prompt=story.prompt, path="given.csv", name="given.csv",
        media_type="text/csv", size=1234, sha256="0" * 64,
    )  # fmt: skip
    given.content.save("a", ContentFile(b"a"))
    story.asks_model()
    read, run = story.call("files.read", path="a.txt"), story.call("shell.run", command="rm -rf *")
    other = story.call("shell.run", command="ls &&\n  echo 2")
    story.answers(Step("model", "reasoning", {"text": "A thought."}), says("I **look**."), read, run, other)
    story.begins(read)
    story.fails(read, "not_found", "There is no a.txt.")
    for call, decision in ((run, {"decision": "reject", "note": "Keep them."}), (other, {"decision": "approve"})):
        gate = story.gate(call, reason=f"The reason of {call.path}.")
        story.append(Step(f"user:{owner.pk}", "action_result", {**decision, "via": "page"}, gate.gate_path))
    story.begins(other)
    story.emits(other, "widget", widget="bars", data={"July": 3}, fallback="July: 3")
    story.emits(other, "file", file=given.pk, name="report.md", summary="A report.")
    story.comes_to(other, "\n".join(f"line {n};" for n in range(100)))
    story.asks_model()
    story.answers(says(ANSWER))
    story.ends("failed", "model_error", "The model did not answer.")
    Prompt.objects.filter(pk=story.prompt.pk).update(fence=1)
    second = continue_prompt(story.prompt.pk, owner)
    story.prompt, story.round = second, 0
    story.asks_model()
    story.answers(Step("model", "text", {"text": "So far", "partial": True}))
    story.ends("cancelled", "cancelled")
    hidden = Story(owner, "A hidden word.", story.conversation)
    hidden.ends()
    Prompt.objects.filter(pk=hidden.prompt.pk).update(visible=False)
    rename(story.conversation, "Q3 <invoices>")
    return Conversation.objects.get(pk=story.conversation.pk)


def test_everything_that_happened_is_in_it(client: Client, owner: User) -> None:
    """In order, by name: whoever is handed it is nobody's "you"."""
    text = words(printed(client, everything(owner)))
    places = [
        "Agentsite testserver Q3 &lt;invoices&gt; Owner Anna Keller Started ",
        " Last changed ",
        " Time zone UTC ",
        "Please look. And tell. given.csv 1.2",
        "I look .",
        "Read a file path: a.txt \u2013 failed: There is no a.txt.",
        "Run a command Reason: The reason of 1/1.",
        "rm -rf *",
        "Rejected by Anna in the chat, ",
        "“Keep them.”",
        "Reason: The reason of 1/2.",
        "ls &amp;&amp; echo 2",
        "Approved by Anna in the chat, ",
        "Result line 0; line 1;",
        "line 15; … 76 lines are not shown … line 92;",
        "July: 3",
        "report.md 1.2",
        "A report.",
        "Found",
        "This turn failed. The model did not answer.",
        "Continue from where it stopped.",
        "So far",
        "This turn was stopped.",
    ]
    found = [text.find(place) for place in places]
    assert -1 not in found, (places[found.index(-1)], text)
    assert found == sorted(found)
    for absent in ("hidden", "A thought", " you ", "line 50"):
        assert absent not in text
    assert text.count("The model did not answer.") == 1


def test_there_is_nothing_to_press_but_the_button_that_prints(client: Client, owner: User) -> None:
    """No list, no message field, no form; the scripts are those of this page."""
    html = printed(client, everything(owner))
    assert re.findall("<button[^>]*>([^<]*)", html) == ["Print"]
    assert re.findall("<(?:form|input|textarea|details)", html) == []
    assert re.findall(r'<script src="[^"]*/([\w-]+)\.js"', html) == ["print"]
    assert [link for link in re.findall('<a [^>]*href="([^"]*)"', html) if link.startswith("/")] == [
        Conversation.objects.get().get_absolute_url()
    ]


def test_the_conversation_links_to_it(client: Client, owner: User) -> None:
    story = Story(owner)
    assert f'href="/c/{story.conversation.pk}/print/"' in client.get(story.conversation.get_absolute_url()).text


def test_paper_is_light(client: Client, owner: User) -> None:
    """Whatever theme this browser has."""
    client.cookies["theme"] = "dark"
    html = printed(client, Story(owner).conversation)
    assert '<html lang="en" data-theme="light">' in html
    assert '<meta name="color-scheme" content="light">' in html


def test_answers_are_rendered_as_on_the_page(client: Client, owner: User) -> None:
    """Code in colours, tables, links that say where they go, and as safe."""
    html = printed(client, everything(owner))
    assert '<span class="c-str">' in html
    assert '<table class="grid">' in html
    assert '<span class="to"> (docs.example)</span>' in html
    assert "<script>alert" not in html
    assert "elsewhere.example" not in html


def test_the_sources_of_diagrams_stand_at_the_end(client: Client, owner: User) -> None:
    """Numbered in the order of the pictures, those in lists too; other code is no diagram."""
    story = Story(owner)
    story.asks_model()
    story.answers(says('```mermaid\ngraph TD\nA-->B\n```\n\n- One:\n\n  ```mermaid\n  pie\n  "a<b": 1\n  ```'))
    story.asks_model()
    story.answers(says("```text\nno mermaid\n```\n\n```mermaid\ngraph TD\nA-->B\n```"))
    story.ends()
    html = printed(client, story.conversation)
    end = html.partition("Sources of the diagrams")[2]
    assert html.partition("Sources of the diagrams")[0].count('<figure class="diagram"') == 3
    assert re.findall(r"<h3>Diagram (\d)</h3> <pre[^>]*>(.*?) ?</pre>", end) == [
        ("1", "graph TD A--&gt;B"),
        ("2", "pie &quot;a&lt;b&quot;: 1"),
        ("3", "graph TD A--&gt;B"),
    ]
    assert "no mermaid" not in end


def test_without_diagrams_there_are_no_sources(client: Client, owner: User) -> None:
    assert "Sources of the diagrams" not in printed(client, everything(owner))


def test_what_waits_says_so_once(client: Client, owner: User) -> None:
    text = words(printed(client, asking(owner, facts=["Not sandboxed."])[0].conversation))
    assert "ls -la Waiting for a decision." in text
    assert "waiting for a decision" not in text
    assert "Approve" not in text


def test_a_question_and_its_answer_are_in_it(client: Client, owner: User, site: Site) -> None:
    prompt, gate = asked(site, owner, "Which <one>?", choices=["# a", "b"])
    assert "Which &lt;one&gt;? # a b Waiting for a decision." in words(printed(client, prompt.conversation))
    decide(gate.pk, owner, "answer", digest=gate.digest, via="page", answer="# a")
    assert "Answered by Anna in the chat" in words(printed(client, prompt.conversation))


def test_an_interrupted_call_tells_what_was_decided(client: Client, owner: User) -> None:
    chief = person("chief", first_name="Mara", is_superuser=True, is_staff=True)
    story, output = interrupted(owner)
    decide(output.pk, chief, "it_ran", digest=output.digest, via="admin")
    assert "Answered by Mara" in words(printed(client, story.conversation))


def test_an_edited_call_shows_both_inputs(client: Client, owner: User) -> None:
    asked_for = {"command": "rm -rf /tmp"}
    facts = shown_of(run, asked_for).recorded["facts"]
    story, output = asking(
        owner, "rm -rf /tmp", digest=digest_of(run, asked_for), schema=schema_digest(run.input), facts=facts
    )
    decide(output.pk, owner, "approve", digest=output.digest, via="page", input={"command": "rm -rf ./tmp"})
    text = words(printed(client, story.conversation))
    places = ("rm -rf ./tmp", "The original input, before it was edited", "rm -rf /tmp", "Edited and approved by Anna")
    assert [text.count(place) for place in places] == [1, 1, 1, 1]
    assert sorted(places, key=text.index) == list(places)


def test_a_repeated_message_says_so(client: Client, owner: User) -> None:
    story = Story(owner, "Say it.")
    story.asks_model()
    story.answers(says("One."))
    story.ends()
    repeat_prompt(story.prompt.pk, owner)
    text = words(printed(client, story.conversation))
    assert text.index("One.") < text.index("Asked again. The earlier answer stands above.")


def test_what_was_redacted_is_not_in_it(client: Client, owner: User) -> None:
    conversation = everything(owner)
    seqs = StoredStep.objects.filter(conversation=conversation, payload__contains="handbook").values_list("seq")
    assert "handbook" in printed(client, conversation)
    redact(conversation, [seq for (seq,) in seqs], owner, "A secret.")
    assert "handbook" not in printed(client, conversation)


def test_nothing_in_it_hides_or_turns_the_rest(client: Client, owner: User) -> None:
    """T-51: texts of people, models and tools are text, without invisible characters in what was decided about."""
    evil = "</pre></main><script>x</script>\u202e\u200b<b onclick=x>"
    story, output = asking(owner, evil)
    decide(output.pk, owner, "reject", digest=output.digest, via="page", reason=evil)
    rename(story.conversation, evil[:30])
    html = printed(client, story.conversation)
    assert "<script>x" not in html
    assert "onclick=x>" not in html
    assert "\u202e" not in html
    assert html.count("&lt;/pre&gt;") >= 2
    assert html.count("U+200B") == plain(evil * 2).count("U+200B")


def test_nobody_else_gets_it(client: Client, owner: User) -> None:
    conversation = Story(owner).conversation
    client.force_login(person("bob"))
    assert client.get(f"/c/{conversation.pk}/print/").status_code == 404


def test_a_long_conversation_is_printed_in_parts(
    client: Client, owner: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """Every turn is in one of them, each leads to the next, and the database is not asked for each turn."""
    conversation = Story(owner, "Turn 0;").conversation
    Prompt.objects.update(state="completed")
    Conversation.objects.update(active_prompt=None)
    with CaptureQueriesContext(connection) as one:
        assert "Part" not in words(printed(client, conversation))
    first = Prompt.objects.get()
    known = {"conversation": conversation, "asked_by": owner, "state": "completed"}
    numbers = [str(n) for n in range(2 * TURNS_MOST + 1)]
    Prompt.objects.bulk_create(Prompt(number=first.number + int(n), input=f"Turn {n};", **known) for n in numbers[1:])
    found, part = [], ""
    for number in ("1", "2", "3"):
        with django_assert_max_num_queries(len(one) + 2):
            html = printed(client, conversation, part)
        assert f"Part {number} of 3" in html
        found += re.findall(r"Turn (\d+);", html.partition("</h1>")[2])
        part = next(iter(re.findall(r'href="(\?part=\d+)">Next part', html)), "")
    assert found == numbers
    assert part == ""
