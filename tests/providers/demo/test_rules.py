"""What the demo model makes of what people say."""

from __future__ import annotations

import html
import json
import re
import time
from typing import Any
from urllib.parse import unquote

import pytest
from django.conf import settings

from agents.engine.agent.projection import EDITED, result_text
from agents.engine.interfaces.attached import quoted_note
from agents.engine.ledger import JSON
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import Failure, Success, ToolOutput
from agents.providers.demo import chat, wire
from agents.providers.demo.guide import INTRODUCTION, TOUR
from agents.providers.demo.reply import Reply
from agents.providers.demo.rules import answer
from agents.providers.demo.sentences import SENTENCES, Sentence
from agents.providers.demo.showing import HONEST, SHOWN

Item = dict[str, Any]
Calls = list[tuple[str, dict[str, JSON]]]

NAMES = tuple(sentence.name for sentence in SENTENCES if not sentence.skill)
WEATHER: Item = {
    "type": "function",
    "name": "weather_today",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def offered(*names: str) -> list[Item]:
    return [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in names]


def user(*texts: str) -> Item:
    return {"role": "user", "content": [{"type": "input_text", "text": text} for text in texts]}


def said(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def ask(*items: Item | str, tools: list[Item] | None = None) -> Reply:
    """What the demo answers; a text is what the user says."""
    given = [user(item) if isinstance(item, str) else item for item in items]
    tools = offered(*NAMES) if tools is None else tools
    return answer({"model": "m", "input": given} | ({"tools": tools} if tools else {}))


def calls(reply: Reply) -> Calls:
    return [(call.name, call.arguments) for call in reply.calls]


def done(reply: Reply, *outputs: str) -> list[Item]:
    """The reply as it stands in the next request, with a result for each call."""
    pairs = [(f"c{id(reply)}{number}", call) for number, call in enumerate(reply.calls)]
    asked = [
        {"type": "function_call", "call_id": key, "name": call.name, "arguments": json.dumps(call.arguments)}
        for key, call in pairs
    ]
    results = zip(pairs, outputs, strict=True)
    return [
        said(reply.text),
        *asked,
        *({"type": "function_call_output", "call_id": key, "output": text} for (key, _), text in results),
    ]


def failure(code: str, message: str, *, edited: bool = False) -> str:
    """The result of a call that failed, in the engine's words."""
    return _result(Failure(error={"code": code, "message": message}), edited)


def success(output: JSON, *, edited: bool = False) -> str:
    return _result(Success(output=output), edited)


def _result(result: Success | Failure, edited: bool) -> str:
    entry = ToolOutput(path="1/1", position=1, tool="shell.run", input={}, call_id="c", result=result)
    text = result_text(entry, Limits().result_characters)
    return f"{EDITED}\n\n{text}" if edited else text


LIST: tuple[str, dict[str, JSON]] = ("files_list", {"path": "."})
PROGRAM: list[tuple[str, dict[str, JSON]]] = [("shell_program", {"argv": ["wc", "-l", "x.md"]})]
DATE: tuple[str, dict[str, JSON]] = ("shell_run", {"command": "date"})


def written(content: str, path: str = "notes.md") -> Calls:
    return [("files_write", {"path": path, "content": content})]


def charted(title: str, kind: str, *points: tuple[str, float]) -> Calls:
    labels, values = [label for label, _ in points], [value for _, value in points]
    series = [{"name": title, "values": values}]
    return [("chart_show", {"title": title, "kind": kind, "labels": labels, "series": series})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("list the files", [LIST]),
        ("Can you please list the files?", [LIST]),
        ("Show me all my files.", [LIST]),
        ("What files are there?", [LIST]),
        ("What files are in this folder?", [LIST]),
        ("List the files in my workspace", [LIST]),
        ("list the files in notes", [("files_list", {"path": "notes"})]),
        ("List the files in the folder `my notes`, please!", [("files_list", {"path": "my notes"})]),
        ("read notes.md", [("files_read", {"path": "notes.md"})]),
        ("READ the file “a b.md”.", [("files_read", {"path": "a b.md"})]),
        ("what's in notes.md?", [("files_read", {"path": "notes.md"})]),
        ("read item.txt for me", [("files_read", {"path": "item.txt"})]),
        ("write notes.md: buy milk", written("buy milk\n")),
        ("Please write notes.md: Thanks, and read it, please.", written("Thanks, and read it, please.\n")),
        ("write notes.md:\n# Shopping\n\n- milk\n- bread\n", written("# Shopping\n\n- milk\n- bread\n")),
        ("write a.py:\n```python\nprint(1)\n```", written("print(1)\n", "a.py")),
        ('create a file todo.txt with "buy milk"', written("buy milk\n", "todo.txt")),
        ("save buy milk to notes.md", written("buy milk\n")),
        ("in notes.md replace milk with bread.", [("files_edit", {"path": "notes.md", "old": "milk", "new": "bread"})]),
        (
            "replace “salt and pepper” with 'sugar' in notes.md",
            [("files_edit", {"path": "notes.md", "old": "salt and pepper", "new": "sugar"})],
        ),
        (
            "replace every a with b in c.md",
            [("files_edit", {"path": "c.md", "old": "a", "new": "b", "all": True})],
        ),
        ("remove milk from c.md", [("files_edit", {"path": "c.md", "old": "milk", "new": ""})]),
        ("search for milk", [("files_search", {"pattern": "milk", "ignore_case": True})]),
        (
            "Search for 'buy milk' in notes",
            [("files_search", {"pattern": "buy milk", "ignore_case": True, "path": "notes"})],
        ),
        ("search for /m[ia]lk/", [("files_search", {"pattern": "m[ia]lk", "regex": True, "ignore_case": True})]),
        ("find milk in the files", [("files_search", {"pattern": "milk", "ignore_case": True})]),
        ("run ls -la", [("shell_run", {"command": "ls -la"})]),
        ("run the program ls -la 'a b'", [("shell_program", {"argv": ["ls", "-la", "a b"]})]),
        ("run the program `wc -l x.md` and read x.md", [*PROGRAM, ("files_read", {"path": "x.md"})]),
        ("Run `ls -la`, please.", [("shell_run", {"command": "ls -la"})]),
        ("run ls ..", [("shell_run", {"command": "ls .."})]),
        ("run `ls and read x.md`", [("shell_run", {"command": "ls and read x.md"})]),
        ("run make and tidy up", [("shell_run", {"command": "make and tidy up"})]),
        ("chart: Jan 3, Feb 5, Mar 4", charted("Chart", "bar", ("Jan", 3), ("Feb", 5), ("Mar", 4))),
        ("draw a line chart of sales: Jan 3.5, Feb -5%", charted("Sales", "line", ("Jan", 3.5), ("Feb", -5))),
        (
            "draw me a bar chart of Jan: 3, Feb: 5 and Mar: 4.",
            charted("Chart", "bar", ("Jan", 3), ("Feb", 5), ("Mar", 4)),
        ),
        (
            "table: Name, Age; Ann, 34; Bob",
            [("table_show", {"title": "Table", "columns": ["Name", "Age"], "rows": [["Ann", 34], ["Bob", ""]]})],
        ),
        (
            "show a table of people:\n| Name | Age |\n|---|---|\n| Ann | 3.5 |",
            [("table_show", {"title": "People", "columns": ["Name", "Age"], "rows": [["Ann", 3.5]]})],
        ),
        (
            "write a report about milk: It is **white**.",
            [("report_write", {"title": "Milk", "text": "It is **white**.\n", "name": "report-milk.md"})],
        ),
        ("activate the skill numbers", [("skills_activate", {"name": "numbers"})]),
        ("turn on numbers.", [("skills_activate", {"name": "numbers"})]),
        ('deactivate the skill "numbers"', [("skills_deactivate", {"name": "numbers"})]),
        ("list the files and run date", [LIST, DATE]),
        ("list the files, run `date` and read a.md", [LIST, DATE, ("files_read", {"path": "a.md"})]),
        ("list the files and list the files", [LIST]),
        ("write notes.md: buy milk and list the files", written("buy milk and list the files\n")),
        ("chart: Jan 3 and list the files", [*charted("Chart", "bar", ("Jan", 3)), LIST]),
        ('use files_read with {"path": "a and b.md"}', [("files_read", {"path": "a and b.md"})]),
        ('Use files.read with {"path": "a.md"}.', [("files_read", {"path": "a.md"})]),
    ],
)
def test_plain_requests_become_calls(text: str, expected: Calls) -> None:
    """Whatever the case, the quotes, the politeness and the full stop; what is the person's own stays as it is."""
    assert calls(ask(text)) == expected


def test_any_tool_is_driven_by_its_name() -> None:
    """One that no sentence is known for: with its input as JSON, which is explained where it is missing."""
    tools = [WEATHER, *offered("clock")]
    assert calls(ask('use weather_today with {"city": "Rome"}', tools=tools)) == [("weather_today", {"city": "Rome"})]
    assert calls(ask('use weather.today with {"city": "Rome"}', tools=tools)) == [("weather_today", {"city": "Rome"})]
    assert calls(ask("use clock", tools=tools)) == [("clock", {})]
    for text in ("use weather_today", "use weather_today with {city}", "use weather_today with {}"):
        reply = ask(text, tools=tools)
        assert not reply.calls
        assert "use weather" in reply.text
        assert 'with {"city": "text"}' in reply.text


@pytest.mark.parametrize("text", ["help", "Hello!", "What can you do?", "?", "hi, help me", "", "Who are you?"])
def test_help_lists_what_the_offered_tools_do(text: str) -> None:
    """One example for each tool of this very request, other people's too; and no tool that is not there."""
    reply = ask(text, tools=[*offered("files_list", "shell_run"), WEATHER])
    assert not reply.calls
    assert reply.text.startswith(INTRODUCTION)
    examples = [line for line in reply.text.split("\n") if line.startswith("- ")]
    weather = "use%20weather_today%20with%20%7B%22city%22%3A%20%22text%22%7D"
    assert examples == [
        "- [`list the files`](?message=list%20the%20files)",
        "- [`run ls -la`](?message=run%20ls%20-la) (commands wait for your approval, too)",
        "- [`draw the loop`](?message=draw%20the%20loop) (a diagram)",
        "- [`show the formula`](?message=show%20the%20formula) (formulas and a table)",
        "- [`show some code`](?message=show%20some%20code) (code and a task list)",
        f'- [`use weather_today with {{"city": "text"}}`](?message={weather})',
    ]
    assert "No tool" in ask(text, tools=[]).text


def test_every_example_of_the_help_is_understood() -> None:
    """Sent as its link puts it into the message field, each asks for what stands there."""
    tools = [*offered(*(sentence.name for sentence in SENTENCES)), WEATHER]
    links = re.findall(r"^- \[`(.+?)`\]\(\?message=(\S+)\)", ask("help", tools=tools).text, re.MULTILINE)
    assert len(links) == len(TOUR) + len(SHOWN) + 1
    for example, message in links:
        assert unquote(message) == example
        reply = ask(example, tools=tools)
        assert reply.calls or HONEST in reply.text, example


def test_the_help_is_for_newcomers() -> None:
    """It can be tried from top to bottom, and shows nothing that needs an explanation."""
    text = ask("help", tools=offered(*(sentence.name for sentence in SENTENCES))).text
    assert "result" not in text
    assert "skill" not in text
    assert text.index("`write notes.md") < text.index("`read notes.md") < text.index("`in notes.md replace")


def test_what_is_not_understood_is_said_to_be_so() -> None:
    """With all that it would understand."""
    reply = ask("draw me a nice chart")
    assert not reply.calls
    assert "did not understand" in reply.text
    reply = ask("list the files and dance")
    assert not reply.calls, "half of a request is not what was asked for"
    assert "did not understand" in reply.text
    assert ask("What is the capital of France?").text.count("\n- [`") == len(TOUR) + len(SHOWN)


def test_it_introduces_itself_once() -> None:
    """In the first answer of a conversation; later ones are short, but for help."""
    first = ask("run date")
    assert first.text == f"I will run `date`, as you asked. {INTRODUCTION}"
    history = [user("run date"), *done(first, "today"), said("Told."), user("list the files")]
    assert ask(*history).text == "I will list the files, as you asked."
    assert ask(*history[:-1], "help").text.startswith(INTRODUCTION)


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda sentence: sentence.tool)
def test_every_call_comes_with_a_reason(sentence: Sentence) -> None:
    """Whoever decides about it reads that beside the call."""
    assert ask(sentence.example, tools=offered(sentence.name)).text.endswith(f", as you asked. {INTRODUCTION}")


def test_what_is_done_first_says_so() -> None:
    assert ask("summarise sales.csv", tools=offered("skills_activate")).text == (
        f"I will activate the skill `numbers`: what you asked for needs that first. {INTRODUCTION}"
    )


def test_it_tells_what_came_of_it() -> None:
    """In its own words, and with the beginning of each result."""
    first = ask("list the files and run date")
    text = ask(
        "list the files and run date",
        *done(first, "a.md  3 B", success({"stdout": "today", "stderr": "", "exit": 0, "seconds": 1})),
    ).text
    assert text == (
        "These are the files:\n\n```\na.md  3 B\n```\n\nThis is what `date` printed:\n\n```\ntoday\nexit: 0 (1.0s)\n```"
    )


def test_only_the_beginning_of_a_result_is_quoted() -> None:
    """And nothing in it gets out of the quotation."""
    reply = ask("read a.md")
    text = ask("read a.md", *done(reply, "\n".join(["````", *map(str, range(40))]))).text
    assert text.startswith("`a.md` says:\n\n`````\n````\n0\n")
    assert text.endswith("\n10\n`````\n\n… and 29 more lines.")
    assert "Nothing." in ask("read a.md", *done(reply, "")).text


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (
            failure("rejected", "Not on a Friday."),
            "but this was refused: “Not on a Friday.” I will not ask again.",
        ),
        (failure("expired", "It expired."), "I asked to run `date`. It expired."),
        (failure("timeout", "Stopped after 5 seconds."), "I could not run `date`: Stopped after 5 seconds."),
        (
            success("tomorrow", edited=True),
            "A person edited my request before it ran. This is what `date` printed:",
        ),
        (failure("failed", "Boo.", edited=True), "I could not run `date`: Boo."),
    ],
)
def test_a_call_that_was_not_done_as_asked_is_told_and_not_asked_for_again(output: str, words: str) -> None:
    """Refused, too late, broken, or changed by a person: each in words, and the turn ends."""
    reply = ask("run date", *done(ask("run date"), output))
    assert not reply.calls
    assert words in reply.text


def test_an_edited_call_stands_for_the_one_that_was_asked_for() -> None:
    """What ran is another command than the person's words say: it is told, and nothing is asked for twice."""
    first = ask("run date and run ls")
    asked = done(first, success("tomorrow", edited=True), "a.md")
    asked[1]["arguments"] = '{"command": "date -d tomorrow"}'
    reply = ask("run date and run ls", *asked)
    assert not reply.calls
    assert "This is what `date -d tomorrow` printed:" in reply.text


def test_then_waits_for_what_comes_before() -> None:
    """One step after the other; none begins after a failure."""
    text = "Run date, then list the files. Then read a.md."
    first = ask(text)
    assert calls(first) == [DATE]
    second = ask(text, *done(first, "today"))
    assert calls(second) == [LIST]
    assert second.text == "Next I will list the files, as you asked."
    third = ask(text, *done(first, "today"), *done(second, "a.md"))
    assert calls(third) == [("files_read", {"path": "a.md"})]
    refused = ask(text, *done(first, failure("rejected", "No.")))
    assert not refused.calls
    assert refused.text.endswith("“No.” I will not ask again.\n\nI did not go on to the next step.")


def test_the_same_request_in_two_steps_is_done_twice() -> None:
    """Results are counted: one stands for one request."""
    text = "list the files, then run date, then list the files"
    first = ask(text)
    second = ask(text, *done(first, "a.md"))
    third = ask(text, *done(first, "a.md"), *done(second, "today"))
    assert [calls(reply) for reply in (first, second, third)] == [[LIST], [DATE], [LIST]]


@pytest.mark.parametrize(
    ("topic", "before", "found"),
    [("the files", LIST, "a.md  3 B"), ("notes.md", ("files_read", {"path": "notes.md"}), "buy milk")],
)
def test_a_report_is_written_from_what_was_found(topic: str, before: tuple[str, JSON], found: str) -> None:
    """Two steps for one request: look first, then write; nothing is written where nothing could be read."""
    text = f"write a report about {topic}"
    first = ask(text)
    assert calls(first) == [before]
    second = ask(text, *done(first, found))
    ((name, arguments),) = calls(second)
    assert name == "report_write"
    assert found in str(arguments["text"])
    last = ask(text, *done(first, found), *done(second, "Written."))
    assert not last.calls
    assert last.text == f"I wrote the report “{arguments['title']}”. You can download it above."
    assert not ask(text, *done(first, failure("not_found", "'notes.md' does not exist."))).calls


def test_a_report_about_what_it_does_not_know_says_so() -> None:
    """It makes nothing up."""
    ((_, arguments),) = calls(ask("write a report about cats"))
    assert "I know nothing about cats" in str(arguments["text"])


def test_a_skills_tool_is_used_after_activating_the_skill() -> None:
    """Which is asked for first; the tool once it is offered. Refused, or without effect, it says what is missing."""
    text = "summarise sales.csv"
    first = ask(text)
    assert calls(first) == [("skills_activate", {"name": "numbers"})]
    active = offered(*NAMES, "csv_summary")
    second = ask(text, *done(first, "numbers is active."), tools=active)
    assert calls(second) == [("csv_summary", {"path": "sales.csv"})]
    assert calls(ask(text, tools=active)) == [("csv_summary", {"path": "sales.csv"})]
    without = ask(text, *done(first, "numbers is active."))
    assert not without.calls
    assert "`csv.summary` is not available here" in without.text
    refused = ask(text, *done(first, failure("unknown_skill", "There is no skill 'numbers'.")))
    assert not refused.calls
    assert "There is no skill" in refused.text


def test_a_tool_that_is_not_offered_is_named() -> None:
    """What is there is done all the same."""
    tools = offered("files_list")
    reply = ask("run date", tools=tools)
    assert not reply.calls
    assert "I cannot run `date`: the tool `shell.run` is not available here." in reply.text
    both = ask("run date and list the files", tools=tools)
    assert calls(both) == [LIST]
    last = ask("run date and list the files", *done(both, "a.md"), tools=tools)
    assert "a.md" in last.text
    assert "I cannot run `date`" in last.text
    assert "no such tool" in ask("use teleport", tools=tools).text


def test_it_is_the_attached_file_or_the_last_one() -> None:
    """Several are asked about, none is said to be missing."""
    note = "[Attached: Sales 2024.csv, 1,234 bytes. It lies in the workspace as attached/Sales 2024.csv.]"
    other = "[Attached: b.txt, 2 bytes. It lies in the workspace as attached/b.txt.]"
    read: Calls = [("files_read", {"path": "attached/Sales 2024.csv"})]
    for text in ("read it", "What is in the file?", "show me this file", "Read the attached file."):
        assert calls(ask(user(text, note))) == read
        assert calls(ask({"role": "user", "content": f"{text}\n\n{note}"})) == read
    assert calls(ask(user("hello", note), said("Hello."), "read it")) == read
    earlier = ask("write a.md: x")
    assert calls(ask("write a.md: x", *done(earlier, "Done."), "read it")) == [("files_read", {"path": "a.md"})]
    assert "`attached/b.txt`" in ask(user("read it", note, other)).text
    assert "which file" in ask("read it").text
    assert "`read attached/b.txt`" in ask(user(other)).text


def test_what_a_client_quoted_is_no_request() -> None:
    quotes = quoted_note([["user", "run `rm a`"], ["assistant", "write b.md: c"]])
    for item in (user("list the files", quotes), user(f"list the files\n\n{quotes}")):
        assert ask(item) == ask("list the files")


def test_going_on_asks_for_what_was_never_begun() -> None:
    """A turn that was stopped before its call ran, and is gone on with; what had begun is told, not repeated."""
    first = ask("run date")
    stopped = failure("cancelled", "Stopped by ann.")
    assert calls(ask("run date", *done(first, stopped))) == [DATE]
    again = ask("run date", *done(first, stopped), *done(first, "today"))
    assert not again.calls
    begun = failure(
        "cancelled", "Stopped by ann. It had begun: some or all of it may have happened, check before you repeat it."
    )
    assert not ask("run date", *done(first, begun)).calls


def test_what_a_newcomer_is_told_to_say_is_understood() -> None:
    """Each button of the first page, and each line of the quick start, shows a tool at work or an example."""
    page = (settings.BASE_DIR / "templates/conversations/empty.html").read_text()
    start = (settings.BASE_DIR / "docs/quickstart.md").read_text()
    suggested = [html.unescape(text) for text in re.findall(r'name="input" value="([^"{]+)"', page)]
    told = re.findall(r"^> (.+)$", start, re.MULTILINE)
    assert min(len(suggested), len(told)) >= 3
    for text in (*suggested, *told):
        assert ask(text).calls or text in ("help", *(shown.example for shown in SHOWN)), text


@pytest.mark.parametrize("length", [10, 400, 40_000])
def test_an_answer_is_seen_to_come_and_does_not_take_long(length: int) -> None:
    """Its own pauses together stay below one and a half seconds, whichever API streams it."""
    reply = ask(f"write a.md: {'x' * length}")
    whole = wire.response(reply, {"model": "m"}, 100)
    for events in (list(wire.events(whole)), list(chat.chunks(chat.completion(whole), {}))):
        assert 0 < reply.pause_seconds * len(events) < 1.5


@pytest.mark.parametrize(
    "text",
    [
        "run x and " * 10_000,
        "list the files, then " * 10_000,
        "chart: " + "Jan 3, " * 20_000,
        "search for " + "in a " * 20_000,
        "save " + "to " * 30_000,
        "replace " + "with in " * 20_000,
        "replace " + "with in " * 240,
        "please " * 20_000,
        "list the files" + ", please" * 20_000,
        "`" * 100_000,
        "chart: Jan " + "1" * 10_000,
        'use files_read with {"path": ' + "[" * 50_000 + "}",
        "show " + "the " * 30_000,
        "read" + " " * 100_000 + "x",
        "read " + "x, \n" * 20_000 + "x",
        "hello" + "!" * 100_000 + "x",
        "chart: " + "=" * 100_000,
        "save" + " " * 100_000 + "in “x",
        "save x in " + "a." * 50_000 + " y",
        "save " + "in “" * 30_000,
        "write a report about " + "a." * 50_000 + " y",
    ],
    ids=lambda text: f"{text[:20]} {len(text)}",
)
def test_long_nonsense_is_answered_at_once(text: str) -> None:
    """Nothing that a person types keeps the server busy; nor does what else the machine does count here."""
    begun = time.process_time()
    assert ask(text).text
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("write a.txt: one and write b.txt: two", {"a.txt": "one", "b.txt": "two"}),
        ('write "one" to a.txt and write "two" to b.txt', {"a.txt": "one", "b.txt": "two"}),
        ("write a.txt: milk and bread and write b.txt: two", {"a.txt": "milk and bread", "b.txt": "two"}),
        ("write a.txt: milk and list the files", {"a.txt": "milk and list the files"}),
    ],
)
def test_a_text_goes_on_to_the_next_one(text: str, written: dict[str, str]) -> None:
    """A text of the person's own ends with its quotes or where the next begins; other requests may be part of it."""
    expected = [("files_write", {"path": path, "content": f"{content}\n"}) for path, content in written.items()]
    assert calls(ask(text)) == expected
