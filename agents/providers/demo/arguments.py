"""Builders for arguments that take more than the words of a request. They return None if the words make no sense."""

from __future__ import annotations

import re
import shlex

from agents.engine.ledger import JSON

Words = dict[str, str]
"""The text of the named groups in a sentence's pattern, without quotes around it."""

WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
COUNTED = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "five": 5, "ten": 10}
POINT = re.compile(r"(?P<label>.{1,120}?)[\s:=]{1,120}(?P<value>-?\d{1,15}(?:\.\d{1,15})?)%?")
FENCED = re.compile(r"```\w*\n(?P<inside>.*?)\n?```", re.DOTALL)
PATH = re.compile(r"\S{0,250}\w[./]\w\S{0,250}")
NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
"""At most 15 digits: a float cannot keep more."""
RULE = re.compile(r"[\s|:-]+")
"""The line below the header of a Markdown table."""


def search(words: Words) -> dict[str, JSON]:
    """`files.search`: a pattern between slashes is a regular expression. Upper and lower case are the same."""
    pattern, how = words["pattern"], {"ignore_case": True} | ({"path": words["path"]} if "path" in words else {})
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        return {"pattern": pattern[1:-1], "regex": True, **how}
    return {"pattern": pattern, **how}


def program(words: Words) -> dict[str, JSON] | None:
    """`shell.program`: the words as a shell splits them, of which the first is the program."""
    try:
        return {"argv": shlex.split(words["line"])}
    except ValueError:
        return None


def writing(words: Words) -> dict[str, JSON]:
    """`files.write`: the content ends with a newline, as a text file does, and has no code fence around it."""
    content = words["content"].strip("\n")
    fenced = FENCED.fullmatch(content.strip())
    return {"path": words["path"], "content": (fenced["inside"] if fenced else content) + "\n"}


def edit(words: Words) -> dict[str, JSON]:
    """`files.edit`: what is removed is replaced with nothing."""
    everywhere = {"all": True} if "all" in words else {}
    return {"path": words["path"], "old": words["old"], "new": words.get("new", ""), **everywhere}


def chart(words: Words) -> dict[str, JSON] | None:
    """`chart.show`: `Jan 3, Feb 5`, with or without a title and a colon before it."""
    title, _, after = words["data"].partition(":")
    points = _points(after)
    if not points:
        title, points = "", _points(words["data"])
    if not points:
        return None
    title = _sentence(title) or "Chart"
    labels, values = zip(*points, strict=True)
    kind = words.get("kind", "bar").lower()
    series = [{"name": title, "values": list(values)}]
    return {"title": title, "kind": kind, "labels": list(labels), "series": series}


def table(words: Words) -> dict[str, JSON] | None:
    """`table.show`: rows separated by semicolons or newlines, cells by commas or bars; the first row is the header."""
    lines = [line for line in re.split(r"[;\n]", words["data"]) if line.strip() and not RULE.fullmatch(line)]
    head, *rows = [[cell.strip() for cell in re.split(r"[|,]", line.strip().strip("|"))] for line in lines] or [[]]
    if not rows:
        return None
    width = len(head)
    cells = [[_cell(cell) for cell in (row + [""] * width)[:width]] for row in rows]
    return {"title": _sentence(words.get("title", "")) or "Table", "columns": head, "rows": cells}


def research(words: Words) -> str:
    """Return the request to carry out before a report: list the files, or read the file, that it is about."""
    topic = words["topic"]
    if "text" in words:
        return ""
    if re.fullmatch(r"((all|the|my) )*files", topic, re.IGNORECASE):
        return "list the files"
    return f"read `{topic}`" if PATH.fullmatch(topic) else ""


def report(words: Words) -> dict[str, JSON]:
    """`report.write`: the text that the person gave, or what was found; otherwise a page that says it knows nothing."""
    topic = words["topic"]
    if "text" in words:
        text = words["text"]
    elif words.get("found"):
        text = f"This is what I found:\n\n{code_block(words['found'])}"
    else:
        text = f"I am a demo model, and I know nothing about {topic}. A language model would write the report here."
    return {"title": _sentence(topic), "text": f"{text}\n", "name": f"report-{_slug(topic)}.md"}


def code_block(text: str) -> str:
    """Return a Markdown code block that shows the text unchanged, whatever it contains."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _points(data: str) -> list[tuple[str, int | float]]:
    """Return labels and values; an empty list if a part of the text is not a label with a value."""
    found = [POINT.fullmatch(part.strip()) for part in re.split(r"[,;\n]|\sand\s", data) if part.strip()]
    return [(match["label"].strip(), _number(match["value"])) for match in found if match] if all(found) else []


def _cell(text: str) -> str | int | float:
    return _number(text) if NUMBER.fullmatch(text) else text


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _sentence(text: str) -> str:
    """Return the text with a capital first letter."""
    text = text.strip()
    return text[:1].upper() + text[1:]


def _slug(text: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:40] or "page"


def trigger(words: Words) -> dict[str, JSON] | None:
    """`trigger.create`: once after a time, again and again, or at a time of the day."""
    text = words["text"].strip()
    if day := words.get("day", "").lower():
        hour, minute = int(words["hour"]), int(words.get("minute", "0"))
        which = {"day": "*", "weekday": "1-5"}.get(day) or str(WEEKDAYS.index(day))
        zone = {"zone": words["zone"]} if "zone" in words else {}
        return {"text": text, "cron": f"{minute} {hour} * * {which}", **zone} if hour < 24 and minute < 60 else None
    number = words["number"].lower()
    minutes = (int(number) if number.isdigit() else COUNTED[number]) * {"minute": 1, "hour": 60, "day": 1440}[
        words["unit"].lower()
    ]
    return {"text": text, ("in_minutes" if "in" in words else "every_minutes"): minutes}


def memory(words: Words) -> dict[str, JSON]:
    """`memory.save`: what was said, as a sentence. `always` pins it."""
    return {"text": _sentence(words["text"]), "pinned": "always" in words}


def forgetting(words: Words) -> dict[str, JSON] | None:
    """`memory.forget`: the number that was said, or of the memory that fits best. None if none was found."""
    if "id" in words:
        return {"id": int(words["id"])}
    if "found" not in words:
        return {}
    best = re.match(r"(\d{1,19}): ", words["found"])
    return {"id": int(best[1])} if best else None
