"""The demo model before a form: it finds values for the fields in a description, by rules.

It knows how people write values in plain sentences: `name: value`, `called Harbour`, texts in quotes, numbers beside
the names of their fields, the words of a choice, and "with" or "without". What it does not find, it leaves out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.engine.interfaces.provider import FINAL_ANSWER, ToolRequest
from agents.engine.ledger import JSON
from agents.providers.demo.reply import Reply
from agents.providers.demo.situation import Situation

FORM = re.compile(r'\AFill in the form “.*^(?P<text>"[^\n]*")\Z', re.DOTALL | re.MULTILINE)
NOT_A_MODEL = "I found this by fixed rules, which know how people often write values. I do not understand the rest."
NOTHING = "I found no value for any field by my rules. Write it as in `name: value`, and put texts in quotes."

DOUBLE, SINGLE = '"\u201c\u201d\u201e', "'\u2018\u2019"
QUOTED = re.compile(
    rf"[{DOUBLE}]([^{DOUBLE}\n]{{1,2000}})[{DOUBLE}]|(?<!\w)[{SINGLE}]([^{SINGLE}\n]{{1,2000}})[{SINGLE}](?!\w)"
    r"|`([^`\n]{1,2000})`"
)
CALLED = re.compile(
    r"\b(?:called|named|titled|with the (?:name|title)|the (?:name|title) is)\s{1,9}(?=\S)", re.IGNORECASE
)
END_OF_NAME = re.compile(
    r"[,;:!?\n]|\.(?=\s|\Z)|\s(?:with|and|in|for|that|which|who|from|to|of|on|at|as|using|by|it|its|without|please)\b"
)
END_OF_TEXT = re.compile(r"[;\n]|[.!?](?=\s|\Z)")
FORMATS = {
    "email": r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
    "uri": r"https?://[^\s<>\"”]{1,2000}[^\s<>\"”.,;:!?)]",
    "date": r"\b\d{4}-\d{2}-\d{2}\b(?!T)",
    "date-time": r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?",
    "time": r"\b\d{2}:\d{2}(?::\d{2})?\b",
    "path": r"(?<![\w/.])[\w-][\w./-]{0,200}(?:/[\w.-]{1,80}|\.[a-z]{1,5})\b",
}
"""How values of these formats look; `path` is that of fields that are named like one."""
PATHS = {"path", "file", "folder"}
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBER = rf"(-?\d{{1,15}}(?:\.\d{{1,15}})?|{'|'.join(NUMBERS)})\b"
NO = rf"\b(?:no|not|without|never|skip|leave out|don[{SINGLE}]?t|neither)(?:\s\w{{1,20}}){{0,2}}\s{{1,3}}"
YES = {"yes", "true", "on", "y"}
NOT_YES = {"no", "false", "off", "n"}
LEAST = 3
"""Letters of a word by which a choice is found."""
BETWEEN = r"[\s_-]"
"""What stands between the words of a name."""
TAKEN = "\ufffc"
"""What stands in the text in place of what a field has taken."""
ANYTHING_TAKEN = re.compile(TAKEN)

Place = tuple[str, Mapping[str, Any]]
"""A field: its name, and its schema without references and null."""


def filling(situation: Situation) -> Reply | None:
    """Return the answer to a request to fill in a form; None to any other request."""
    asked, form = FORM.search(situation.said), situation.offered.get(FINAL_ANSWER)
    if asked is None or form is None:
        return None
    values = fill(form["parameters"], str(json.loads(asked["text"])))
    return Reply(NOT_A_MODEL if values else NOTHING, (ToolRequest(FINAL_ANSWER, values),))


def fill(schema: Mapping[str, Any], text: str) -> dict[str, JSON]:
    """Return values for the fields of this JSON Schema that the text names, by field."""
    places = [(name, _plain(each, schema)) for name, each in schema.get("properties", {}).items()]
    named = "|".join(each for name, place in places for each in _names(name, place))
    field = re.compile(rf",?\s(?:and\s)?(?:the\s)?(?:{named})\s?(?:[:=]|is\b)", re.IGNORECASE)
    reader, found = _Reader(text, field), {}
    for rule in RULES:  # the surest first: what one takes, the next ones do not see
        for name, place in places:
            if name not in found and (value := rule(reader, (name, place))) is not None:
                found[name] = value
    texts = {name: place for name, place in places if _is_text(place)}
    left = [name for name in texts if name not in found]
    needed = [name for name in left if "default" not in texts[name]] or left
    if len(needed) == 1 and (value := reader.quoted()) is not None:
        found[needed[0]] = value
    if not found and len(places) == len(texts) == 1 and text.strip():
        found[places[0][0]] = text.strip()  # a form of one text is about all of it
    return {name: found[name] for name, _ in places if name in found}


@dataclass
class _Reader:
    """The text that is still to be read. `field`: how the name of a field looks after which its value follows."""

    text: str
    field: re.Pattern[str]

    def take(self, start: int, end: int) -> str:
        """Return this part of the text, which no other field gets."""
        found = self.text[start:end]
        self.text = f"{self.text[:start]}{TAKEN * (end - start)}{self.text[end:]}"
        return found.strip()

    def quoted(self, start: int = 0, within: int | None = None) -> str | None:
        """Take the first text in quotes from here on, which begins within so many characters."""
        found = QUOTED.search(self.text, start)
        if found is None or (within is not None and found.start() > start + within):
            return None
        self.take(*found.span())
        return next(each for each in found.groups() if each is not None)

    def until(self, start: int, end: re.Pattern[str]) -> str | None:
        """Take what stands before this end, or what stands in quotes here; None if there is nothing."""
        if (quoted := self.quoted(start, within=1)) is not None:
            return quoted
        stops = (each.search(self.text, start) for each in (end, self.field, ANYTHING_TAKEN))
        at = min((stop.start() for stop in stops if stop), default=len(self.text))
        return self.take(start, at).rstrip(",") or None

    def pattern(self, pattern: str) -> str | None:
        """Take the first place where this occurs, or its first group."""
        found = re.compile(pattern, re.IGNORECASE).search(self.text)
        return self.take(*found.span(1 if found.re.groups else 0)) if found else None


def _by_format(reader: _Reader, place: Place) -> JSON:
    """An address, a date or a path, which look like nothing else."""
    name, schema = place
    kind = schema.get("format") or ("path" if PATHS & set(_words(name)) else "")
    if not _is_text(schema) or kind not in FORMATS:
        return None
    if kind != "path":
        return reader.pattern(FORMATS[kind])
    named = (reader.pattern(rf"\b{each}\s?[:=]?\s[`{DOUBLE}{SINGLE}]?([\w./-]{{2,200}}\w)") for each in _names(*place))
    return next(filter(None, named), None) or reader.pattern(FORMATS[kind])


def _by_name(reader: _Reader, place: Place) -> JSON:
    """`name: value`, also with "is" or "=" between."""
    _, schema = place
    if _is_text(schema):
        return _after_name(reader, place)
    if _is_list_of_texts(schema) and (said := _after_name(reader, place)):
        return [each for each in (part.strip() for part in re.split(r",|\band\b", said)) if each]
    return None


def _by_calling(reader: _Reader, place: Place) -> JSON:
    """`called Harbour`."""
    name, schema = place
    if not _is_text(schema) or not {"name", "title"} & {*_words(name), *_words(str(schema.get("title", "")))}:
        return None
    found = CALLED.search(reader.text)
    return reader.until(found.end(), END_OF_NAME) if found else None


def _by_number(reader: _Reader, place: Place) -> JSON:
    """A number beside the name of its field."""
    name, schema = place
    if schema.get("type") not in ("integer", "number") or "enum" in schema:
        return None
    for each in _names(name, schema):
        said = reader.pattern(rf"(?<![\w.]){each}\s{{0,3}}(?:is|are|of|:|=|to)?\s{{0,3}}{NUMBER}")
        said = said or reader.pattern(rf"(?<![\w.-]){NUMBER}\s{{1,3}}(?:\w{{1,20}}\s{{1,3}})?{each}\b")
        if said is not None:
            number = float(NUMBERS.index(said.lower())) if said.lower() in NUMBERS else float(said)
            return int(number) if number.is_integer() else number
    return None


def _by_choice(reader: _Reader, place: Place) -> JSON:
    """The words of one option, or of several for a list of options."""
    _, schema = place
    many = schema.get("type") == "array" and isinstance(schema.get("items"), dict)
    options = [each for each in (schema["items"] if many else schema).get("enum", ()) if isinstance(each, str)]
    if many:
        return [each for each in options if _says(each, reader.text)] or None
    whole = [each for each in options if _says(each, reader.text)]
    if named := [each for each in whole if not any(each != other and each in other for other in whole)]:
        return named[0] if len(named) == 1 else None
    scores = {each: sum(_says(word, reader.text) for word in _words(each) if len(word) >= LEAST) for each in options}
    best = [each for each, score in scores.items() if score == max(scores.values()) > 0]
    return best[0] if len(best) == 1 else None


def _by_yes(reader: _Reader, place: Place) -> JSON:
    """A mention of what is to be done or not."""
    name, schema = place
    if schema.get("type") != "boolean":
        return None
    for each in _names(name, schema):
        if said := reader.pattern(rf"\b{each}\s{{0,3}}[:=]\s{{0,3}}(\w+)"):
            return True if said.lower() in YES else False if said.lower() in NOT_YES else None
        if reader.pattern(rf"{NO}{each}\b"):
            return False
        if reader.pattern(rf"\b{each}\b"):
            return True
    return None


RULES: tuple[Callable[[_Reader, Place], JSON], ...] = (
    _by_format,
    _by_calling,
    _by_number,
    _by_yes,
    _by_name,
    _by_choice,
)


def _after_name(reader: _Reader, place: Place) -> str | None:
    """Take what is said after the name of a field."""
    for each in _names(*place):
        for sign in (
            rf"(?<!\w){each}\s{{0,3}}[:=]\s{{0,3}}",
            rf"(?<!\w){each}\s{{1,3}}(?:is|are|should be|will be|of|as|saying|that says)\s{{1,3}}",
            rf"\b(?:with|the|a|an)\s(?:\w{{1,20}}\s){{0,2}}{each}\s{{1,3}}(?=[{DOUBLE}{SINGLE}`])",
        ):
            if found := re.compile(sign, re.IGNORECASE).search(reader.text):
                return reader.until(found.end(), END_OF_TEXT)
    return None


def _says(words: str, text: str) -> bool:
    """Whether the text has these words, one after the other."""
    joined = BETWEEN.join(map(re.escape, _words(words)))
    return bool(joined) and re.search(rf"\b{joined}s?\b", text, re.IGNORECASE) is not None


def _names(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield patterns of how people write the name of a field: its title, its name, in singular or plural."""
    for words in (_words(str(schema.get("title", ""))), _words(name)):
        if words:
            *first, last = map(re.escape, words)
            last = rf"{last.removesuffix('s')}s?" if len(last) > LEAST else last
            yield BETWEEN.join([*first, last])


def _words(text: str) -> list[str]:
    return [each.lower() for each in re.findall(r"[^\W_]+", text)]


def _is_text(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "string" and "enum" not in schema and "const" not in schema


def _is_list_of_texts(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "array" and isinstance(items := schema.get("items"), dict) and _is_text(items)


def _plain(schema: JSON, root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """Return a schema without a reference, and without null beside it; {} for what these rules cannot fill."""
    if not isinstance(schema, dict) or depth > LEAST:
        return {}
    if isinstance(named := schema.get("$ref"), str):
        return _plain(root.get("$defs", {}).get(named.removeprefix("#/$defs/"), {}), root, depth + 1)
    others = [each for each in schema.get("anyOf", ()) if isinstance(each, dict) and each.get("type") != "null"]
    if len(others) == 1:
        return {**_plain(others[0], root, depth + 1), **{key: each for key, each in schema.items() if key == "title"}}
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        return {**schema, "items": _plain(schema["items"], root, depth + 1)}
    return schema
