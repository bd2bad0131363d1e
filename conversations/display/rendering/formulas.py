r"""Formulas: LaTeX as MathML, which browsers draw themselves.

They stand between dollar signs, `$x^2$` in a line and `$$x^2$$` on their own, or in LaTeX's brackets, `\(x^2\)` and
`\[x^2\]`, which many models write whatever they are told.
"""

from __future__ import annotations

import re
from functools import lru_cache

from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from math_core import LatexError, LatexToMathML
from mdit_py_plugins.dollarmath import dollarmath_plugin

from conversations.database.erasable_cache import erasable

LENGTH_MOST = 2_000
"""Characters of a formula. Each may open a group in another, and math-core 0.9 overflows its stack after 20,000."""
CLOSING = {r"\(": r"\)", r"\[": r"\]"}
"""LaTeX's brackets."""
KEPT = 2_000
"""Formulas in the cache: a text that streams is rendered repeatedly."""

_latex = LatexToMathML(fancy_error=False, max_expansions=100)

STYLES = {
    "border-bottom": "rule-below",
    "border-left": "rule-left",
    "border-right": "rule-right",
    "border-top": "rule-above",
    "padding-left:0": "near-left",
    "padding-left:1em": "apart",
    "padding-right:0": "near-right",
    "text-align:left": "left",
    "text-align:right": "right",
    "width:50%": "half",
    "width:100%": "full",
}
"""The classes in place of the inline styles that math-core writes, which the policy of the pages does not allow."""
_STYLE = re.compile(r' (?:class="[^"]*"|style="([^"]*)")')


@erasable
@lru_cache(maxsize=KEPT)
def formula(latex: str, *, displayed: bool) -> str:
    """Return a formula as MathML, `displayed` on lines of its own or within text.

    One that math-core cannot read is returned as its source, with the reason as its title: an unknown command, or one
    that would make a link.
    """
    if len(latex) > LENGTH_MOST:
        return _source(latex, f"This formula has more than {LENGTH_MOST:,} characters.")
    try:
        drawn = _latex.convert_with_local_state(latex, displaystyle=displayed)
    except LatexError as error:
        return _source(latex, f"This formula cannot be shown: {_reason(error)}")
    drawn = _STYLE.sub(_classes, drawn)
    return drawn.replace("<math", f'<math alttext="{escape(latex)}"', 1)


def _source(latex: str, why: str) -> str:
    return f'<code class="formula" title="{escape(why)}">{escape(latex)}</code>'


def _reason(error: LatexError) -> str:
    """Return math-core's reason without the position in front of it: the source stands beside it."""
    return re.sub(r"^\d+: ", "", str(error))


def _classes(style: re.Match[str]) -> str:
    """Return classes in place of an inline style. Colours, which may be unreadable on ours, are left out."""
    found = []
    for each in (style[1] or "").split(";"):
        name, _, value = (part.strip() for part in each.partition(":"))
        found += [STYLES[key] for key in (name, f"{name}:{value}") if key in STYLES]
    return f' class="{" ".join(found)}"' if found else ""


def formulas_plugin(parser: MarkdownIt) -> None:
    """Let the parser read formulas. "$5 and $6" is none: no blank within the signs, no digit after them."""
    dollarmath_plugin(
        parser, allow_labels=False, allow_space=False, allow_digits=False, allow_blank_lines=False, double_inline=True
    )
    parser.inline.ruler.before("escape", "math_bracket", _in_brackets)
    parser.block.ruler.before("fence", "math_bracket_block", _block_in_brackets)


def _in_brackets(state: StateInline, silent: bool) -> bool:
    r"""Read `\(x\)`, or `\[x\]` within a paragraph."""
    opening = state.src[state.pos : state.pos + 2]
    if opening not in CLOSING:
        return False
    closing = CLOSING[opening]
    if state.html_terminator_last(closing) <= state.pos + 2:  # looked for once in each text, however many there are
        return False
    end = state.src.find(closing, state.pos + 2)
    if not state.pos + 2 < end <= state.posMax - 2:
        return False
    if not silent:
        token = state.push("math_inline" if opening == r"\(" else "math_inline_double", "math", 0)
        token.content = state.src[state.pos + 2 : end]
    state.pos = end + 2
    return True


def _block_in_brackets(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    r"""Read a block that begins with `\[` and ends with `\]`, without empty lines between them."""
    if state.is_code_block(first) or not _line(state, first).startswith(r"\["):
        return False
    for number in range(first, last):
        line = _line(state, number)
        if line.endswith(r"\]"):
            break
        if not line or r"\]" in line:
            return False
    else:
        return False
    if silent:
        return True
    lines = [_line(state, each) for each in range(first, number + 1)]
    token = state.push("math_block", "math", 0)
    token.block, token.map = True, [first, number + 1]
    token.content = "\n".join(lines)[2:-2]
    state.line = number + 1
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].strip()
