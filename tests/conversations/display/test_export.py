"""A conversation as Markdown: all that was said and decided, and nothing that looks like what it is not."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pytest_django import DjangoAssertNumQueries

from agents.engine.ledger import Step
from conversations.approvals.decisions import decide
from conversations.display.export import export_markdown, fenced
from conversations.models import Conversation, File, Prompt
from conversations.prompts.listing import rename
from conversations.prompts.start import continue_prompt, start_conversation
from tests.conversations.questions import asked
from tests.conversations.recorded import Site
from tests.conversations.support import Story, asking, says

EVIL = "```\n\n# Approved by Kim\n\n~~~~\n</details><!-- \u202e\x1b[2J\r# Heading\n> x\n````\n- [ ] `"
TEXTS = st.text(alphabet=st.sampled_from("`~ab\n\r\t #>-<!*_[]\\\x1b\u2028\u202e"), max_size=80) | st.text()


def everything(owner: User) -> Conversation:
    """A conversation with one of each thing that may happen."""
    story = Story(owner, "Please look.\nAnd tell.")
    given_file = File(
        conversation=story.conversation, prompt=story.prompt, path="in*put*.csv", name="in*put*.csv",
        media_type="text/csv", size=1234, sha256="0" * 64,
    )  # fmt: skip
    given_file.content.save("a", ContentFile(b"a"))
    story.asks_model()
    read, run = story.call("files.read", path="a.txt"), story.call("shell.run", command="rm -rf *")
    other = story.call("report.write", name="q")
    story.answers(says("I **look**."), read, run, other)
    story.begins(read)
    story.comes_to(read, {"content": "one\ntwo"})
    output = story.gate(run)
    decision = {"decision": "reject", "note": "Keep them.", "via": "page"}
    story.append(Step(f"user:{owner.pk}", "action_result", decision, output.gate_path))
    story.begins(other)
    story.emits(other, "widget", widget="bars", data={"July": 3}, fallback="July: 3")
    story.emits(other, "file", file=given_file.pk, name="report.md", summary="A report.")
    story.fails(other, "broken", "It broke.")
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
    rename(story.conversation, "Q3 *invoices*")
    return Conversation.objects.get(pk=story.conversation.pk)


@pytest.mark.django_db
def test_a_long_conversation_is_asked_for_as_a_short_one(
    ann: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """Whatever the number of its turns, the database is asked as often as for one."""
    conversation = start_conversation(ann, "Long")
    Story(ann, "One.", conversation).ends()
    with CaptureQueriesContext(connection) as asked:
        export_markdown(conversation)
    for number in range(5):
        story = Story(ann, f"{number}.", conversation)
        file = File(conversation=conversation, prompt=story.prompt, name=f"{number}.csv", size=1, sha256="0" * 64)
        file.content.save("a", ContentFile(b"a"))
        story.ends()
    with django_assert_max_num_queries(len(asked)):
        text = export_markdown(conversation)
    assert [line for line in text.splitlines() if "Attached file" in line] == [
        f"- Attached file: {number}\\.csv, 1 byte" for number in range(5)
    ]


@pytest.mark.django_db
def test_everything_that_happened_is_in_it(ann: User) -> None:
    """In order, with who decided; invisible turns are not."""
    text = export_markdown(everything(ann))
    places = [
        "# Q3 \\*invoices\\*\n",
        "Owner: ann. Started ",
        "## 1. ann, 20",
        "> Please look.\n> And tell.\n",
        "- Attached file: in\\*put\\*\\.csv, 1.2 KB",
        "**Agent**:\n\n> I **look**.\n",
        '(tool files\\.read):\n\n```text\n{\n  "path": "a.txt"\n}\n```\n',
        "Result:\n\n```text\n",
        "```text\nrm -rf *\n```\n\nRejected by ann in the chat, 20",
        "> Keep them.\n",
        "(tool report\\.write):",
        "It failed:\n\n```text\nIt broke.\n```\n",
        "Shown: bars\n\n> July: 3\n",
        "File created: report\\.md\n\n> A report.\n",
        "**The site**:\n\n> The model did not answer.\n\nThis turn failed.\n",
        "## 2. ann, 20",
        "Continue from where it stopped.\n",
        "**Agent** (stopped here):\n\n> So far\n\nThis turn was stopped.\n",
    ]
    found = [text.find(place) for place in places]
    assert -1 not in found, places[found.index(-1)]
    assert found == sorted(found)
    assert "hidden" not in text


@pytest.mark.django_db
def test_what_waits_says_so(ann: User) -> None:
    text = export_markdown(asking(ann)[0].conversation)
    assert "Waiting for a decision. Reason:\n\n> Run: ls -la\n\nThis turn is waiting for a decision.\n" in text


@pytest.mark.django_db
def test_questions_and_answers_are_in_it(ann: User, site: Site) -> None:
    prompt, gate = asked(site, ann, "Which *one*?", choices=["# a", "b"])
    told = export_markdown(prompt.conversation)
    for text in ("**A question**:", "> Which *one*?", "- \\# a", "Waiting for a decision."):
        assert text in told
    decide(gate.pk, ann, "answer", digest=gate.digest, via="page", answer="# a")
    told = export_markdown(prompt.conversation)
    assert "Answered by ann in the chat" in told
    assert "```text\n# a\n```" in told
    assert '"decision"' not in told


def test_the_same_record_gives_the_same_bytes(ann: User) -> None:
    talk = everything(ann)
    assert export_markdown(talk) == export_markdown(Conversation.objects.get(pk=talk.pk))


@pytest.mark.django_db
def test_no_text_breaks_out_of_its_place(ann: User) -> None:
    """T-51: the headings of the document are ours, whatever people, models and tools wrote; no HTML, no escapes."""
    story = Story(ann, EVIL)
    story.asks_model()
    call = story.call("evil\n# tool`", path=EVIL)
    story.answers(says(EVIL), call)
    story.begins(call)
    story.emits(call, "widget", widget="x\n# w", data={}, fallback=EVIL)
    story.emits(call, "file", file=1, name="x\n# f<b>", summary=EVIL)
    story.comes_to(call, EVIL)
    story.ends("failed", "model_error", EVIL)
    rename(story.conversation, "# T <b>`x`</b>")
    text = export_markdown(Conversation.objects.get(pk=story.conversation.pk))
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
    tokens = MarkdownIt().parse(text)
    ours = [t.level for t in tokens if t.type == "heading_open"].count(0)
    assert ours == 2
    assert not any(t.type == "html_block" and t.level == 0 for t in tokens)
    assert [t.content for t in tokens if t.type == "inline"][-1] == "This turn failed."


@given(TEXTS)
def test_nothing_ends_a_fence_but_its_own_end(text: str) -> None:
    """Whatever stands in it, a reader of Markdown sees one block of code, and what follows it."""
    tokens = MarkdownIt().parse(f"{fenced(text)}\n\n# After\n")
    assert [token.type for token in tokens] == ["fence", "heading_open", "inline", "heading_close"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Q3 invoices", 'filename="Q3 invoices.md"'),
        ("../../etc/passwd", 'filename="_.._etc_passwd.md"'),
        ('a"\u202eb', 'filename="a\\"b.md"'),
        ("\u00e9" * 200, "filename*=utf-8''" + "%C3%A9" * 80 + ".md"),
    ],
)
def test_it_is_a_file_of_the_title(client: Client, ann: User, bob: User, title: str, name: str) -> None:
    """For its owner alone, as an attachment."""
    talk = Story(ann).conversation
    rename(talk, title)
    client.force_login(ann)
    response = client.get(f"/c/{talk.pk}/export/")
    assert response["Content-Type"] == "text/markdown; charset=utf-8"
    assert response["Content-Disposition"] == f"attachment; {name}"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response.text.startswith("# ")
    client.force_login(bob)
    assert client.get(f"/c/{talk.pk}/export/").status_code == 404
