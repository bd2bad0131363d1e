"""One answer with everything that answers can show: each kind of diagram, formulas, languages, tables, scripts."""

from __future__ import annotations

import re

from tests.conversations.display.rendering.test_formulas import DRAWN
from tests.conversations.pictures.corpus import KINDS

LANGUAGES = {
    "python": "def add(a: int, b: int = 1) -> int:\n    '''Add.'''\n    return a + b  # the sum",
    "javascript": "const add = (a, b = 1) => `${a + b}`; // the sum",
    "typescript": "interface Pair { a: number }\nexport const sum = ({ a }: Pair): number => a + 1;",
    "html": '<p class="lead">Words &amp; <b>bold</b></p><!-- more -->',
    "css": ".prose > * + * { margin-top: 12px; color: #345; } /* apart */",
    "sql": "SELECT number, due FROM invoices WHERE due < CURRENT_DATE ORDER BY due; -- late",
    "sh": 'for f in *.csv; do echo "$f" | tr a-z A-Z; done # all',
    "json": '{"name": "one", "count": 2, "is": [true, null]}',
    "yaml": "name: one\ncount: 2\nitems:\n  - first # the first\n  - 'second'",
    "toml": '[project]\nname = "one"\nversion = 2 # the second',
    "rust": "fn add(a: i32) -> Result<i32, String> { Ok(a + 1) } // the sum",
    "go": 'package main\n\nfunc add(a int) string { return "a" } // the sum',
    "java": "public final class A { int add(int a) { return a + 1; } /* the sum */ }",
    "c": '#include <stdio.h>\nint main(void) { return printf("%d\\n", 2); } /* two */',
    "cpp": "template <class T> auto add(T a) -> T { return a + 1; } // the sum",
    "csharp": "public record Pair(int A) { public int Sum => A + 1; } // the sum",
    "ruby": 'def add(a, b: 1)\n  "#{a + b}" # the sum\nend',
    "php": '<?php function add(int $a): string { return "$a"; } // the sum',
    "diff": "@@ -1,2 +1,2 @@\n-old line\n+new line\n same",
    "dockerfile": 'FROM python:3.13\nRUN pip install one # the first\nCMD ["python"]',
    "kotlin": "data class Pair(val a: Int) { fun sum(): Int = a + 1 } // the sum",
}
WORD = "Donaudampfschifffahrt" * 12

BLOCKS = f"""# Everything at once

A paragraph with **bold**, *slanted* and ~~deleted~~ words, `--code-in-a-line`, [a link](https://example.com/path), the
formula $e^{{i\\pi}} + 1 = 0$ and a footnote[^1]. It costs $5 and $6, which is no formula.

## Lists

- one
- two, which is longer and takes more than one line on a phone, because there are many words in it
  - inside of two
    1. a number
    2. another
- three

1. first

   A second paragraph.

2. second, with a diagram:

   ```mermaid
   flowchart LR
     A[In a list] --> B[It is drawn]
   ```

- [x] done
- [ ] to do

Term
: What it means.

Another term
: The first meaning.
: The second meaning, with `code`.

> A quote with code in it:
>
> ```python
> print("in a quote")
> ```
>
> and a list
>
> - one
> - two

---

## Tables

| Name | Amount | Share | Remark |
|:-----|-------:|:-----:|--------|
| Alpha | 1,234.50 | 12 % | short |
| Beta | 12.00 | 1 % | a remark that is much longer than the others and needs more than one line in its cell |
| Gamma | -3.75 | $\\frac{{1}}{{3}}$ | `code` and **bold** |

| {" | ".join(f"Column {n}" for n in range(1, 15))} |
|{"---|" * 14}
{"".join(f"| {' | '.join(f'row {row}, {n}' for n in range(1, 15))} |{chr(10)}" for row in range(1, 41))}
## Words

{WORD}

مرحبا بالعالم، هذا نص من اليمين إلى اليسار مع `code` و 12 رقما.

- عنصر أول
- שלום עולם

这是一段中文文字、用来检查换行和字体。日本語の文章もここにあります。한국어 문장도 있습니다.

```mermaid
flowchart LR
  A[Never closed --> B
```

An image that is not there: ![a chart of the year](no-such-chart.png), and one from elsewhere: ![far](https://example.com/a.png).

An unknown formula: $\\unknown{{x}}$.

[^1]: A note with *slanted* words.

"""


def fence(language: str, source: str) -> str:
    """A fence, with an empty line after it."""
    return f"```{language}\n{source.strip()}\n```\n\n"


DIAGRAMS = "## Diagrams\n\n" + "".join(f"### {kind}\n\n{fence('mermaid', source)}" for kind, source in KINDS.items())
FORMULAS = "## Formulas\n\n" + "".join(
    f"Formula {n} in a line: ${latex}$, and alone:\n\n$$\n{latex}\n$$\n\n" for n, latex in enumerate(DRAWN, 1)
)
CODE = "## Code\n\n" + "".join(f"In {name}:\n\n{fence(name, source)}" for name, source in LANGUAGES.items())
END = "That is everything."
EVERYTHING = f"{BLOCKS}{FORMULAS}{CODE}{DIAGRAMS}{END}"


def everything(times: int) -> str:
    """Everything so many times, each time with diagrams and an image of its own."""
    begun = re.compile(r"^( *)```mermaid\n", re.MULTILINE)
    text = EVERYTHING.removesuffix(END)
    parts = (begun.sub(rf"\g<0>\g<1>%% {n}\n", text).replace("no-such", f"no-such-{n}") for n in range(times))
    return "".join(parts) + END
