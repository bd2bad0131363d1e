"""What the demo model shows of itself: fixed answers with diagrams, formulas and code, as a model could give them."""

from __future__ import annotations

import re
from typing import NamedTuple

from agents.engine.interfaces.provider import FINAL_ANSWER
from agents.providers.demo.reply import Reply
from agents.providers.demo.situation import Situation

HONEST = "This text is one of my rules: I only know when to show it."


class Shown(NamedTuple):
    """A text, and the request for it: an example of its words, and a pattern that matches all of a request."""

    example: str
    pattern: re.Pattern[str]
    remark: str
    text: str


LOOP = """\
This is how a turn works here:

```mermaid
flowchart TD
  person["Your message"] --> worker["A worker takes the turn"]
  worker --> model["The model is asked"]
  model -->|"calls of tools"| gate{"Needs approval?"}
  gate -->|"no"| tools["The tools run"]
  gate -->|"yes"| decision["A person decides"]
  decision -->|"approved"| tools
  decision -->|"rejected, with the reason"| model
  tools -->|"results"| model
  model -->|"no more calls"| answer["The answer is complete"]
```

Each step is recorded before the next one begins[^1], so a turn that waits for a decision holds no process.

[^1]: If a process ends in between, the turn goes on where it stopped."""

FORMULA = r"""These are two well-known formulas. With **compound interest**, an amount $A$ that grows by the rate $r$
each year becomes $A_n = A\,(1 + r)^n$ after $n$ years. It has doubled when

$$n = \frac{\ln 2}{\ln (1 + r)}$$

| Rate $r$ | Years until it has doubled |
|---:|---:|
| 2 % | 35.0 |
| 5 % | 14.2 |
| 7 % | 10.2 |

The **normal distribution** with the mean $\mu$ and the standard deviation $\sigma$ has the density

$$f(x) = \frac{1}{\sigma \sqrt{2 \pi}} \, e^{-\frac{1}{2} \left( \frac{x - \mu}{\sigma} \right)^2}$$"""

CODE = """\
Here is one small task in four languages: which invoices are overdue? In **Python**:

```python
from datetime import date


def overdue(invoices: dict[str, date], today: date) -> list[str]:
    \"\"\"Return the numbers of the invoices that were due before today, oldest first.\"\"\"
    return sorted((number for number, due in invoices.items() if due < today), key=invoices.__getitem__)
```

In **SQL**:

```sql
SELECT number, due
FROM invoices
WHERE due < CURRENT_DATE AND paid_on IS NULL
ORDER BY due;
```

The Python function forgets that an invoice may be paid. As a **diff** of the call:

```diff
-late = overdue(invoices, date.today())
+late = overdue(without_paid(invoices), date.today())
```

And in the **shell**, for a file with lines such as `2025-0801 2025-09-30`:

```sh
awk -v today="$(date +%F)" '$2 < today { print $1 }' invoices.txt
```

- [x] shown in four languages
- [ ] tested with your invoices"""


def _request(words: str) -> re.Pattern[str]:
    return re.compile(rf"(please )?{words}( please)?[.!]?", re.IGNORECASE)


SHOWN = (
    Shown("draw the loop", _request("(draw|show)( me)? (the|a|your) (loop|turn|diagram)"), "a diagram", LOOP),
    Shown("show the formula", _request("(show|write)( me)? (the|a|some) formulas?"), "formulas and a table", FORMULA),
    Shown("show some code", _request("(show|write)( me)? (some|the|a bit of) code"), "code and a task list", CODE),
)
"""What can be shown, in the order of the help."""


def showing(situation: Situation) -> Reply | None:
    """Return the text that was asked for; None to any other request, and where an answer must have a form."""
    if FINAL_ANSWER in situation.offered:
        return None
    return next((Reply(f"{each.text}\n\n{HONEST}") for each in SHOWN if each.pattern.fullmatch(situation.said)), None)
