"""What the model of the site says: for each text a turn that waits, and one that fails once it was decided."""

from __future__ import annotations

from typing import Any

from tests.texts import TEXTS, short


def waits(text: str) -> list[dict[str, Any]]:
    """A turn with a call of each kind, in which three wait for somebody."""
    cell, label = short(text, 400), short(text, 60)
    rows = [[cell, 1918.4, "1918.4 / 0"], ["x", 2, cell]]
    labels = [f"{number} {label}" for number in range(25)]
    series = [{"name": label, "values": [float(at - 7) for at in range(25)]}]
    days = [f"{number} {label}" for number in range(60)]
    line = [{"name": label, "values": [float(at % 7) for at in range(60)]}]
    table = f"| {label.replace('|', '')} | Requests / failed |\n|---|---:|\n| {cell.replace('|', '')} | 1918.4 / 0 |\n"
    return [
        {
            "reasoning": text,
            "text": text,
            "calls": [
                call("nasty_echo", text=text),
                call("nasty_fail", text=text),
                call("table_show", title=label, columns=[label, "n", "Requests"], rows=rows),
                call("chart_show", title=label, kind="bar", labels=labels, series=series, unit=short(text, 20)),
                call("chart_show", title=label, kind="line", labels=days, series=line),
                call("report_write", name=f"{label}.md", title=label, text=text),
            ],
        },
        {
            "text": f"{table}\n{text}",
            "calls": [
                call("shell_run", command=text),
                call("files_write", path=f"folder/{name_of(text)}.txt", content=text),
                call("nasty_change", text=text, texts=[label, "x", cell], by_text={label: text}),
            ],
        },
        {"text": text},
    ]


def fails(text: str) -> list[dict[str, Any]]:
    """A turn that asks once, and fails in these words afterwards."""
    refusal = {"status": 400, "code": "invalid_request_error", "message": short(text, 2_000)}
    return [{"text": text, "calls": [call("nasty_change", text=text)]}, {"refusal": refusal}]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


def name_of(text: str) -> str:
    """A file name that begins like the text, in as many bytes as a file system takes."""
    return short(text, 60).replace("/", "-").replace("\x00", "").encode()[:180].decode(errors="ignore")


SENT = {name: text.replace("\r\n", "\n") for name, text in TEXTS.items()}  # as a form's line breaks are stored
WAITS = {name: f"{text}\n\n{name} waits" for name, text in SENT.items()}
"""The messages, by the name of their text."""
FAILS = {name: f"{text}\n\n{name} fails" for name, text in SENT.items()}
TURNS = {
    **{WAITS[name]: waits(text) for name, text in TEXTS.items()},
    **{FAILS[name]: fails(text) for name, text in TEXTS.items()},
    "*": [{"text": "Done."}],
}
