"""Code in colours: what Pygments tells apart, in the few classes that the pages have colours for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache, lru_cache

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound

from conversations.database.erasable_cache import erasable

COLOURED_MOST = 20_000
"""Characters of code that are coloured; longer code is plain."""
LINE_MOST = 500
"""Characters of a line of coloured code. Some lexers take time that grows with the square of a line's length, and
nobody reads such lines."""
SECONDS_MOST = 0.25
"""Processor time in which code is coloured; the rest stays plain. It takes a tenth of that, unless it was written to
take long: some lexers take seconds for nothing but line breaks."""

LANGUAGES = {
    "awk", "bash", "batch", "c", "clojure", "cmake", "common-lisp", "console", "cpp", "csharp", "css", "dart",
    "diff", "django", "docker", "elixir", "erlang", "fortran", "fsharp", "go", "graphql", "groovy", "haskell",
    "html", "http", "ini", "java", "javascript", "json", "jsx", "julia", "kotlin", "less", "lua", "make",
    "markdown", "nasm", "nginx", "nix", "objective-c", "ocaml", "perl", "php", "postgresql", "powershell",
    "prolog", "properties", "protobuf", "pycon", "python", "pytb", "r", "ruby", "rust", "scala", "scheme", "scss",
    "solidity", "sql", "swift", "terraform", "tex", "toml", "tsx", "typescript", "vbnet", "vim", "vue", "wast",
    "xml", "yaml", "zig",
}  # fmt: skip
"""The languages that have colours, by Pygments' names: those that models write. Each was tried with whatever takes its
lexer longest, see bench/colours.py; another's may take minutes for a line."""

CLASSES = {
    Comment: "c-com",
    Generic.Deleted: "c-del",
    Generic.Heading: "c-key",
    Generic.Inserted: "c-add",
    Generic.Output: "c-com",
    Generic.Prompt: "c-com",
    Generic.Subheading: "c-num",
    Keyword: "c-key",
    Keyword.Type: "c-name",
    Name.Attribute: "c-name",
    Name.Builtin: "c-name",
    Name.Class: "c-name",
    Name.Decorator: "c-name",
    Name.Function: "c-name",
    Name.Tag: "c-key",
    Number: "c-num",
    Operator.Word: "c-key",
    String: "c-str",
}
"""The CSS class of each type of token, and of those below it that are not here themselves."""

Run = tuple[str, str]
"""A part of code in one colour: its class, or "", and its text."""


def code_block(text: str, info: str, *, headed: bool = True, coloured: bool = True) -> str:
    """Return code in its box, under the name of its language or file. `info`: what stands beside its opening fence."""
    label = info.split(maxsplit=1)[0] if info.strip() else ""
    head = f'<div class="code-head"><span class="grow">{escape(language_name(label))}</span></div>' if headed else ""
    shown = highlight(text, label) if coloured else escape(text)
    return f'<div class="code">{head}<pre tabindex="0"><code>{shown}</code></pre></div>'


def highlight(text: str, language: str) -> SafeString:
    """Return code as HTML, in colours if its language is known. `language`: its name, or the name of a file."""
    return mark_safe("".join(in_colour(kind, escape(part)) for kind, part in runs(text, language)))  # noqa: S308 - escaped


def in_colour(kind: str, html: str) -> str:
    """Return HTML in the colour of this class."""
    return f'<span class="{kind}">{html}</span>' if kind and html else html


def runs(text: str, language: str) -> list[Run]:
    """Return the code as runs. Together they are the text, whatever its lexer does."""
    found: list[Run] = []
    for kind, part in _tokens(text, language):
        if found and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + part)
        else:
            found.append((kind, part))
    return found


def runs_of_lines(text: str, language: str) -> list[list[Run]]:
    """Return the runs of each line, without its newline: what spans several lines has its colour in each of them."""
    lines: list[list[Run]] = [[]]
    for kind, part in runs(text, language):
        first, *others = part.split("\n")
        lines[-1].append((kind, first))
        lines += [[(kind, other)] for other in others]
    return lines


def _tokens(text: str, language: str) -> Iterator[Run]:
    found_lexer = lexer_of(language)
    if found_lexer is None or len(text) > COLOURED_MOST or max(map(len, text.split("\n"))) > LINE_MOST:
        yield "", text
        return
    lexer = found_lexer()  # the first one of its class compiles its expressions, which is not the code's fault
    end, deadline = 0, time.thread_time() + SECONDS_MOST
    for start, token, found in lexer.get_tokens_unprocessed(f"{text}\n"):  # some lexers know no comment without it
        value = found[: len(text) - start]
        if start != end or not text.startswith(value, start) or time.thread_time() > deadline:
            break
        yield _class(token), value
        end += len(value)
    if end < len(text):
        yield "", text[end:]


@cache
def _class(token: _TokenType) -> str:
    return next((CLASSES[each] for each in reversed(token.split()) if each in CLASSES), "")


def language_name(language: str) -> str:
    """Return what code is labelled with: the name of its language, or that of its file as it was given."""
    name, _, file = language.partition(":")
    if file:
        return file
    try:
        found = find_lexer_class_by_name(name.lower())
    except ClassNotFound:
        return language or "Code"
    return "Text" if found is TextLexer else str(found.name)


@erasable
@lru_cache(maxsize=500)  # a model may write any name
def lexer_of(language: str) -> type[Lexer] | None:
    """Return the lexer of a language, by one of its names or a file in it ("app.py", "python:src/app.py"), or None."""
    name, _, file = language.lower().partition(":")
    for find, named in ((find_lexer_class_by_name, name), (find_lexer_class_for_filename, file or name)):
        try:
            found = find(named)
        except ClassNotFound:
            continue
        if found is not None and LANGUAGES.intersection(found.aliases):
            return found
    return None
