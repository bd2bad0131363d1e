"""The tool that gives people a report as a file to download."""

from __future__ import annotations

import re
import unicodedata

from pydantic import BaseModel, Field

from agents.categories import REPORTS
from agents.engine.ledger import valid_text
from agents.engine.tools.tool import Risk, ToolCall, tool

TEXT_MOST = 500_000
"""Characters of one report: about 150 pages."""
NAME_MOST = 100
"""Characters of a file name: file systems take 255 bytes, and a character may have four."""
LINE_MOST = 160
"""Characters of the report's first line that its summary repeats."""


class Report(BaseModel):
    """The input of `report.write`."""

    name: str = Field(min_length=1, max_length=200, description="The file's name, such as q3-invoices.md.")
    title: str = Field(min_length=1, max_length=200, description="The report's heading.")
    text: str = Field(min_length=1, max_length=TEXT_MOST, description="The report in Markdown, without the heading.")


# WRITE, because it creates a file. No gate, because the file stays with the conversation until its reader downloads it:
# no file of the workspace and nothing outside the site changes, and nobody else is notified. It may run again after a
# crash: nobody is shown the file of an attempt that was not recorded.
@tool(
    "report.write",
    risk=Risk.WRITE,
    approval=False,
    idempotent=True,
    category=REPORTS,
    title="Write a report",
    says=lambda asked: f"wrote {file_name(asked.name)}",
)
def write_report(call: ToolCall[Report]) -> str:
    """Give the person a report in Markdown, as a file to download.

    Use it for text that they will keep or pass on; put short answers into your message.
    """
    name, title = file_name(call.input.name), " ".join(valid_text(call.input.title).split())
    text = valid_text(call.input.text).strip()
    content = f"# {title}\n\n{text}\n".encode()
    call.file(name, content, media_type="text/markdown", summary=f"{title}: {_first_line(text)}".rstrip(": "))
    return f"The person can download {name} ({len(content):,} bytes)."


def file_name(name: str) -> str:
    """Return a name that is safe on every system: no folders, no leading dot, visible characters, a text extension."""
    visible = (c if unicodedata.category(c)[0] in "LMNPS" else " " for c in unicodedata.normalize("NFC", name))
    clean = re.sub(r'(?:[<>:"/\\|?*\s]|\.\.+)+', "-", "".join(visible).strip())
    stem, dot, extension = clean.rpartition(".")
    if not dot or extension.lower() not in ("md", "markdown", "txt"):
        stem, extension = clean, "md"
    return f"{stem.strip('.-')[:NAME_MOST].rstrip('.-') or 'report'}.{extension}"


def _first_line(text: str) -> str:
    """Return the first line with text, preferably a sentence and not a heading, without Markdown marks."""
    lines = [line.strip() for line in text.splitlines() if line.strip("#>*-+=_|` ")]
    line = next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")
    line = re.sub(r"^[#>\s]*(?:[-*+]\s+)?", "", line)
    return line if len(line) <= LINE_MOST else f"{line[:LINE_MOST].rstrip()}\N{HORIZONTAL ELLIPSIS}"
