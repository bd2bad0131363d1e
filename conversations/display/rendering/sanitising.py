"""Sanitising: which HTML a rendered text may have. Whatever else reached it from a model's text is removed."""

from __future__ import annotations

import re

import nh3
from django.utils.safestring import SafeString, mark_safe

from conversations.display.rendering.code import CLASSES as CODE
from conversations.display.rendering.formulas import STYLES

TEXT = {
    "a", "blockquote", "br", "code", "dd", "del", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "img", "li", "ol", "p", "pre", "s", "span", "strong", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
FIGURE = {"details", "figure", "summary"}
FORMULA = {
    "math", "menclose", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts",
    "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder",
    "munderover",
}  # fmt: skip
"""The elements of MathML Core that math-core writes. Never `annotation-xml`, in which HTML may stand, or `maction`."""
TAGS = TEXT | FIGURE | FORMULA
BLOCKS = {"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "ul"}
"""The blocks of text, each of which reads in the direction of its own script."""
ATTRIBUTES = {
    "a": {"aria-label", "href", "rel", "target", "title"},
    "code": {"title"},
    "div": {"aria-label", "dir", "id", "role", "tabindex"},
    "pre": {"tabindex"},
    "img": {"alt", "loading", "src"},
    "span": {"aria-label", "role"},
    "sup": {"id"},
    **{tag: {"dir"} for tag in BLOCKS},
    "ol": {"dir", "start"},
    "math": {"alttext", "display"},
    "menclose": {"notation"},
    "mfrac": {"linethickness"},
    "mi": {"mathvariant"},
    "mo": {
        "form", "fence", "largeop", "lspace", "maxsize", "minsize", "movablelimits", "rspace", "separator", "stretchy",
        "symmetric",
    },
    "mover": {"accent"},
    "mpadded": {"depth", "height", "lspace", "voffset", "width"},
    "mspace": {"depth", "height", "width"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mtable": {"displaystyle", "scriptlevel"},
    "mtd": {"columnspan", "rowspan"},
    "munder": {"accentunder"},
    "munderover": {"accent", "accentunder"},
}  # fmt: skip
ALIGNED = {"right", "center"}
CELL = {*ALIGNED, "whole", "long"}
CLASSES = {
    "a": {"back"},
    "code": {"formula"},
    "div": {"canvas", "code", "code-head", "footnote", "formula", "table-wrap"},
    "figure": {"diagram"},
    "img": {"on-dark", "on-light", "own"},
    "li": {"task"},
    "mtable": set(STYLES.values()),
    "mtd": set(STYLES.values()),
    "span": {"grow", "not-shown", "tick", "to", "w", *CODE.values()},
    "table": {"grid"},
    "td": CELL,
    "th": CELL,
}
SCHEMES = {"http", "https", "mailto"}
IDS = re.compile(r"fn(?:ref)?-[\w.%-]+")
PICTURES = re.compile(r"/(?:prompts|files)/\d+/diagrams/[0-9a-f]{64}\.svg\?theme=(?:light|dark)|/c/\d+/images/[^?#]+")
"""The addresses of images: the site's own, of diagrams and of files of the conversation."""


def sanitise(html: str) -> SafeString:
    """Return HTML without anything that is not listed here."""
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_filtered,
        allowed_classes=CLASSES,
        url_schemes=SCHEMES,
        link_rel=None,  # our own renderer says it of links that leave the site
    )
    return mark_safe(clean)  # noqa: S308 - sanitised above, and only here


def _filtered(tag: str, attribute: str, value: str) -> str | None:
    """Return the value of an attribute, or None if it is not one of ours."""
    if attribute == "id":
        return value if IDS.fullmatch(value) else None
    if tag == "img" and attribute == "src":
        return value if PICTURES.fullmatch(value) else None
    return value
