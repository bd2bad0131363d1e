"""Summarise files into a report: a model reads each file by itself, several side by side."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from agents.categories import DOCUMENTS
from agents.engine.apart import set_apart
from agents.engine.errors import ToolError
from workflows.definition import workflow
from workflows.flow import Flow
from workflows.shipped.documents import TEXT_MOST
from workflows.shipped.given import RULE
from workflows.shipped.paths import ReportPath
from workflows.shipped.reports import STOPPED, code, deliver

FILES_MOST = 20
"""Files of one report."""
SIDE_BY_SIDE = 5
"""Files that are summarised at the same time."""

SUMMARISE = """Summarise a file of the workspace: {path}

What matters: {focus}

Say what the file says, in three to five sentences, and add nothing of your own. The points are what somebody must not
miss: figures, dates, decisions, each in a sentence. Leave them out if there are none.

{rule}

{text}"""

Pattern = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


class Files(BaseModel):
    """Which files to summarise, and where the report goes."""

    files: list[Pattern] = Field(
        ["*.md", "*.txt"],
        min_length=1,
        max_length=50,
        description=(
            "Paths, folders, or patterns such as *.md and notes/*.txt. "
            f"Up to {FILES_MOST} text files at once; the first {TEXT_MOST:,} characters of each are read."
        ),
    )
    focus: str = Field(
        "",
        max_length=500,
        title="What matters to you",
        description="What the summaries should look at, such as costs and deadlines. Leave it empty for everything.",
    )
    report: ReportPath = Field(
        "summary.md",
        title="Report file",
        description="Where the report is written in the workspace. You see it before it is written.",
    )


class Summary(BaseModel):
    """A summary of a file."""

    summary: str = Field(min_length=1, max_length=4_000, description="What the file says, in three to five sentences.")
    points: list[str] = Field([], max_length=10, description="What nobody must miss, one sentence each.")


class Summarised(BaseModel):
    """A report on files: what was done, the files that are summarised in it, and those that are not, with the reason.

    `report`: what became of its file.
    """

    done: str
    files: list[str]
    left_out: list[str]
    report: str


@workflow("files.summarise", title="Summarise files", category=DOCUMENTS, workspace="required", rounds=80)
async def summarise_files(flow: Flow[Files]) -> Summarised:
    """Reads files of a workspace, and writes a report with a summary of each. The report names its sources."""
    asked = flow.input
    found = await flow.tool("documents.find", patterns=asked.files)
    paths = [path for path in found["files"] if path != asked.report]
    left_out: dict[str, str] = dict(found["left_out"])
    if not paths:
        why = "".join(f" {path}: {each}" for path, each in left_out.items())
        raise ToolError(f"Nothing to summarise: no file matches {', '.join(asked.files)}.{why}", "not_found")
    if len(paths) > FILES_MOST:
        count = f"These are {len(paths)} files, and one report has at most {FILES_MOST}"
        raise ToolError(f"{count}: name fewer, for example one folder at a time.", "too_many")
    summaries: dict[str, Summary] = {}
    cut: set[str] = set()
    for start in range(0, len(paths), SIDE_BY_SIDE):
        flow.progress(start, len(paths) + 1, f"Reading {paths[start]}")
        some = paths[start : start + SIDE_BY_SIDE]
        texts = await flow.gather(*[_or_why(flow.tool("documents.read", path=path)) for path in some])
        read = {path: text for path, text in zip(some, texts, strict=True) if not isinstance(text, str)}
        cut |= {path for path, text in read.items() if not text["whole"]}
        told = [_or_why(_summary(flow, path, text["text"])) for path, text in read.items()]
        said = dict(zip(read, await flow.gather(*told), strict=True))
        failed = {path: text for path, text in zip(some, texts, strict=True) if isinstance(text, str)}
        left_out |= failed | {path: each for path, each in said.items() if isinstance(each, str)}
        summaries |= {path: each for path, each in said.items() if isinstance(each, Summary)}
    if not summaries:
        why = " ".join(f"{path}: {each}" for path, each in left_out.items())
        raise ToolError(f"No file could be summarised. {why}", "failed")
    flow.progress(len(paths), len(paths) + 1, "The report is waiting for approval")
    count = "1 file" if len(summaries) == 1 else f"{len(summaries)} files"
    text = report_of(asked.focus, summaries, cut, left_out)
    written = await deliver(flow, asked.report, text, f"A summary of {count}: {', '.join(summaries)}")
    flow.progress(len(paths) + 1, len(paths) + 1, "Done")
    reasons = [f"{path}: {why}" for path, why in left_out.items()]
    others = f" {len(reasons)} left out." if reasons else ""
    return Summarised(done=f"Summarised {count}.{others}", files=list(summaries), left_out=reasons, report=written)


def report_of(focus: str, summaries: dict[str, Summary], cut: set[str], left_out: dict[str, str]) -> str:
    """Return the report in Markdown: a section for each file, and what was left out."""
    parts = ["# Summary of files"]
    if focus.strip():
        parts.append(f"What matters: {' '.join(focus.split())}")
    for path, each in summaries.items():
        parts += [f"## {code(path)}", " ".join(each.summary.split())]
        parts += ["\n".join(f"- {' '.join(point.split())}" for point in each.points)] if each.points else []
        parts += [f"*Only the first {TEXT_MOST:,} characters of this file were read.*"] if path in cut else []
    if left_out:
        parts += ["## Left out", "\n".join(f"- {code(path)}: {why}" for path, why in left_out.items())]
    return "\n\n".join(parts) + "\n"


def _summary(flow: Flow[Files], path: str, text: str) -> Awaitable[Summary]:
    """Let a model summarise this text. It has no tools: whatever a document asks for, nothing is done."""
    focus = " ".join(flow.input.focus.split()) or "everything"
    path = json.dumps(path, ensure_ascii=False)
    told = SUMMARISE.format(path=path, focus=focus, rule=RULE, text=set_apart(text))
    return flow.agent(told, tools=[], output=Summary, rounds=4)


async def _or_why(call: Awaitable[Any]) -> Any:
    """Return what a call returns; of one that fails the reason, so that the others go on."""
    try:
        return await call
    except ToolError as error:
        if error.code in STOPPED:
            raise
        return error.message
