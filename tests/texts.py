"""Nasty texts: what people, models, tools and files write that pages were not drawn for.

Each is given by its name. Put them wherever a text can stand; the page must stay whole.
"""

from __future__ import annotations

ZALGO = "".join(letter + "\u0301\u0316\u0338\u034b\u0327\u0489\u030d\u0330" * 4 for letter in "zalgo comes ")
LINK = f"https://example.com/{'a-very/long_path.of%20it/' * 40}{'-'.join(['word'] * 80)}?query={'x' * 400}&and=more#end"

TEXTS: dict[str, str] = {
    "unspaced": "\u8bf7\u68c0\u67e5\u7b2c\u4e09\u5b63\u5ea6\u7684\u53d1\u7968\uff0c" * 20
    + "\u4e8c\u91cd\u6255\u3044\u3092\u898b\u3064\u3051\u308b\uff76\uff80\uff76\uff85" * 20
    + "\u0e01\u0e23\u0e38\u0e13\u0e32\u0e15\u0e23\u0e27\u0e08\u0e2a\u0e2d\u0e1a" * 20,
    "arabic": "تحقق من جميع فواتير الربع الثالث (2025) وابحث عن المدفوعات المكررة: 4,310.20 يورو. " * 6,
    "hebrew-code": 'הרץ את rm -rf "/tmp/תיקייה (1)" --force עכשיו, ואז if (x > 3) { return a[0]; } ותודה. ' * 5,
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈👍🏽🇨🇭1️⃣" * 60,
    "word": "a" * 10_000,
    "code-word": f"`{'a' * 10_000}` `{'a-' * 5_000}`",
    "link": LINK,
    "wide": "\ufdfd" * 40 + "𒐫" * 40 + "W" * 400,
    "zalgo": ZALGO * 6,
    "bidi": "invoice\u202egpj.exe\u202c \u2067מחק\u2069 \u200f(1)\u200e \u202dabc\u202e def \u2066" * 8,
    "zero-width": "pay\u200bpal\u200d.\ufeffcom\u2060 so\u00adft\u00adhy\u00adphen \u034f\u180e\u2063x" * 12,
    "no-breaks": "one\u00a0line\u202fwithout\u00a0a\u2011place\u00a0to\u00a0break\u00a0it\u00a0" * 60,
    "lines": "\n".join(f"line {number} of 200" for number in range(1, 201)),
    "long-lines": "\n".join("word " * 400 for _ in range(4)).strip(),
    "blanks": "before" + " " * 5_000 + "after" + "\n" * 300 + "\t" * 200 + "end",
    "control": "\x1b[31mred\x1b[0m\x07\x08\x08\r\nover\rwritten\x0b\x0c\x7f\x85\u2028next\u2029par" * 6,
    "markup": '</script><b onclick="x">**bold** `code`</b> <!-- [a](javascript:x) {{ 7*7 }} {% now %} &amp; %s' * 4,
    "markdown": "```\nunclosed\n# not a heading\n| a | b |\n|---|\n> q\n> > q\n* * *\n1. [x\n~~~\n" * 4,
}  # fmt: skip


def short(text: str, most: int = 100) -> str:
    """Return how a text begins, in one line: for names and other places that take so much."""
    return " ".join(text.split())[:most].strip()
