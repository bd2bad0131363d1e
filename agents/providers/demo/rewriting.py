"""The demo model's refactorings: three small changes of a text, by rules."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator
from itertools import groupby

STRING_LEAST = 4
"""Characters of a text, with its quotes, that deserves a name of its own if it is repeated; short ones read well."""
PLAIN = ("0", "1", "2", "10", "100")
"""Numbers that are repeated for no common reason."""
WIDTHS = ("center", "ljust", "rjust", "zfill")
"""Methods whose first argument is a width."""
NAME_MOST = 30


def renamed(text: str, old: str, new: str) -> str | None:
    """Return the text with this word in place of the other, wherever it stands; None if it does not have the word."""
    if not has_word(text, old):
        return None
    return re.sub(rf"\b{re.escape(old)}\b", new, text)


def has_word(text: str, word: str) -> bool:
    """Whether the text has this word."""
    return re.search(rf"\b{re.escape(word)}\b", text) is not None


def is_name(word: str) -> bool:
    """Whether something can be called so."""
    return word.isidentifier() and not keyword.iskeyword(word)


def without_trailing_blanks(text: str) -> str:
    """Return the text without blanks at the ends of its lines."""
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def repeated_value(source: str) -> tuple[str, str] | None:
    """Return a value that a Python module repeats, as it is written there, and a name for it; None if there is none."""
    found = {written: list(nodes) for written, nodes in _by_writing(source)}
    for written, nodes in sorted(found.items(), key=lambda each: -len(each[1])):
        name = _name_for(written, source, nodes)
        if len(nodes) > 1 and name and with_constant(source, written, name):
            return written, name
    return None


def with_constant(source: str, written: str, name: str) -> str | None:
    """Return a Python module with this name in place of a value, and the name defined at its top.

    None if that cannot be done: the value does not occur, the name is taken, or the module would mean something else.
    """
    nodes = dict(_by_writing(source)).get(written, [])
    if not nodes or not is_name(name) or has_word(source, name):
        return None
    lines = [line.encode() for line in source.split("\n")]
    for node in sorted(nodes, key=lambda each: (each.lineno, each.col_offset), reverse=True):
        line = lines[node.lineno - 1]
        before, after = line[: node.col_offset], line[node.end_col_offset :]
        lines[node.lineno - 1] = before + name.encode() + after
    at = _end_of_head(ast.parse(source))
    defined = ["", f"{name} = {written}"] if at else [f"{name} = {written}", "", ""]
    whole = [line.decode() for line in lines]
    changed = "\n".join([*whole[:at], *defined, *whole[at:]])
    return changed if _means_the_same(source, changed, name, nodes[0]) else None


def _by_writing(source: str) -> Iterator[tuple[str, list[ast.Constant]]]:
    """Yield the values of a Python module by how they are written, with the places of each."""
    lines = source.split("\n")
    try:
        found = [node for node in _constants(ast.parse(source)) if node.lineno == node.end_lineno]
    except (SyntaxError, ValueError, RecursionError):  # no Python, or nested deeper than anybody reads
        return
    places = [(_written(node, lines), node) for node in found]
    for written, group in groupby(sorted(places, key=lambda each: each[0]), key=lambda each: each[0]):
        yield written, [node for _, node in group]


def _written(node: ast.Constant, lines: list[str]) -> str:
    return lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()


def _constants(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the numbers and texts that deserve a name. Those in f-strings, patterns and docstrings stay as they are."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr | ast.pattern):
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.Constant) and not isinstance(child.value, bool) and _deserves(child.value):
            yield child
        yield from _constants(child)


def _deserves(value: object) -> bool:
    if isinstance(value, str):
        return len(repr(value)) >= STRING_LEAST + 2
    return isinstance(value, int | float) and str(value) not in PLAIN


def _name_for(written: str, source: str, nodes: list[ast.Constant]) -> str:
    """Return a name for a value by how it is used; what it is, if that says nothing; "" if there is no name for it."""
    value = nodes[0].value
    if isinstance(value, str):
        name = "_".join(re.findall(r"[A-Za-z0-9]+", value)).upper()[:NAME_MOST].rstrip("_")
        return name if name[:1].isalpha() else ""
    width = any(re.search(rf"\.{method}\({re.escape(written)}\b", source) for method in WIDTHS)
    return "WIDTH" if width else "NUMBER_" + re.sub(r"\W", "_", written)


def _end_of_head(tree: ast.Module) -> int:
    """Return the number of the last line of the docstring and the imports at the top of a module; 0 without them."""
    end = 0
    for node in tree.body:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (isinstance(node, ast.Import | ast.ImportFrom) or (text and not end)):
            break
        end = node.end_lineno or end
    return end


def _means_the_same(before: str, after: str, name: str, value: ast.Constant) -> bool:
    """Whether two modules differ only by this name for a value."""

    class Inlined(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.Constant(value.value, value.kind) if node.id == name else node

        def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
            own = isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
            return None if own else self.generic_visit(node)

    try:
        return ast.dump(Inlined().visit(ast.parse(after))) == ast.dump(ast.parse(before))
    except SyntaxError:
        return False
