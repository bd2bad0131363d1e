"""What the scripted model does, by what the person says."""

from __future__ import annotations

from typing import Any


def says(text: str, *commands: str) -> dict[str, Any]:
    """One answer: a text, and commands that must be approved."""
    calls = [{"name": "shell_run", "arguments": {"command": command}} for command in commands]
    return {"text": text, "calls": calls}


PARAGRAPHS = "".join(f"This is **paragraph** number {n}, with `code` in it.\n\n" for n in range(1, 11))
LONG = f"{PARAGRAPHS}```py\nprint('here')\n```\n\n- one\n- two\n\nThe end of it."
"""Text that takes a while to come."""

SCRIPTS = """# مرحبا

Run `tool --out file` **now**.

- عنصر أول
- the second

> שלום

| اسم | number |
|-|-|
| واحد | 1 |

```
print("x")
```
"""
"""Markdown in scripts that are read from the right, and from the left."""
ADDRESS = f"https://example.com/{'a/very/long/path/' * 4}{'w' * 600}"
SHEET = f"""| Engine | Requests / failed | Total | Why | Source | {" | ".join(f"Week {n}" for n in range(1, 9))} |
|---|---|---:|---|---|{"---:|" * 8}
| INV-2025-0801-A | 1918.4 / 0 | -12,345.67 EUR | A reason that needs several lines | {ADDRESS} |{"2,480.00 |" * 8}
| demo | 2.1 / 13 | 7 | short | x |{"1 |" * 8}
"""
"""A table wider than any page, with figures of two parts, dates and an address."""

TURNS: dict[str, list[dict[str, Any]]] = {
    "Look around, then say the day.": [
        says("I will look.", "echo two files"),
        says("Now the day.", "echo it is Friday"),
        says("Two files, Friday."),
    ],
    "Tidy up.": [says("I will tidy.", "rm -rf notes"), says("I left the notes where they are.")],
    "Ask in three windows.": [says("I ask.", "echo in three windows"), says("All three told.")],
    "Edit this.": [says("I ask.", "echo one\n\n  echo two"), says("Edited it is.")],
    "Edit this in the admin.": [says("I ask.", "echo five"), says("Edited there it is.")],
    "Ask on a page alone.": [says("I ask.", "echo alone"), says("Alone it was.")],
    "Ask on the first page.": [says("I ask.", "echo on the first page"), says("There it was.")],
    "Three at once.": [says("Three.", "echo a", "echo b", "echo c"), says("All three seen.")],
    "Ask and go on.": [says("I ask.", "echo on"), says("It went on.")],
    "Stream slowly.": [
        {"text": "I look first.", "calls": [{"name": "files_list", "arguments": {"path": "."}}]},
        {"text": LONG, "pause_seconds": 0.06},
    ],
    "Read what I gave you.": [
        {"text": "I read.", "calls": [{"name": "files_read", "arguments": {"path": "notes.txt"}}]},
        says("I read it."),
    ],
    "A long command.": [
        says("I ask.", "\n".join(f"echo {n} --out file-{n}.txt" for n in range(1, 80))),
        says("A long one it was."),
    ],
    "Two long commands.": [
        says("I ask.", *("\n".join(f"echo {n} {name}" for n in range(1, 80)) for name in ("first", "second"))),
        says("Two long ones."),
    ],
    "Sleep long.": [says("I ask.", "echo begun && sleep 600"), says("Slept.")],
    "Ask and fail.": [says("I ask.", "echo before it fails"), {"refusal": {"status": 400, "message": "No."}}],
    "Speak in two scripts.": [{"text": SCRIPTS, "calls": []}],
    "Show a wide table.": [
        {
            "calls": [
                {
                    "name": "table_show",
                    "arguments": {
                        "title": "The same as a widget",
                        "columns": ["Engine", "Requests / failed", "Why", "Source"],
                        "rows": [
                            [
                                "INV-2025-0801-A",
                                "1918.4 / 0",
                                "A reason that is long enough to need several lines",
                                ADDRESS[:500],
                            ]
                        ],
                    },
                }
            ]
        },
        {"text": f"Here it is:\n\n{SHEET}\nThat was the table.", "pause_seconds": 0.03},
    ],
    "Fail at once.": [{"refusal": {"status": 429, "message": "No.", "headers": {"Retry-After": "600"}}}],
    "*": [says("Hello.")],
}
