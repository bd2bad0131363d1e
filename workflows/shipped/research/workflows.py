"""Research a question: a model proposes searches, which run side by side; what they find is read, and it answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints, field_validator

from agents.categories import DOCUMENTS
from agents.engine.apart import set_apart
from agents.engine.errors import ToolError
from workflows.definition import workflow
from workflows.flow import Flow
from workflows.shipped.documents import can_be_shown
from workflows.shipped.given import RULE
from workflows.shipped.paths import Folder, ReportPath
from workflows.shipped.reports import STOPPED, code, deliver, quoted
from workflows.shipped.research.passages import TEXT_MOST, Passage, found_in, windows

ROUNDS = 3
"""How often the model may ask for searches."""
SEARCHES_MOST = 5
"""Searches of one round; they run side by side."""
PASSAGES_MOST = 8
"""Passages that are read after the searches of one round."""
FILES_TOLD = 200
"""Names of files that the model is told, so that it sees what kind of documents there are."""
STEPS = ROUNDS + 2
NOTHING = "Nothing was found."
NO_EVIDENCE = "The documents that were read do not show this."

SEARCH = """Plan the searches for a question about the documents of a workspace.

The question: {question}

The documents: {files}

Searched for so far: {searched}

Propose up to {most} searches that are still needed: words or short phrases as they may stand in a line of a document,
in its language. Try other words for the same thing. Propose none if what was read answers the question.

{rule}

What was read so far:

{passages}"""

ANSWER = """Answer a question from the documents of a workspace.

The question: {question}

Say only what the passages below show. Break your answer down into claims, and give for each the path and the numbers of
the lines that show it, as they stand before the lines. If the passages do not answer the question, say so, and make no
claims.

{rule}

What was read:

{passages}"""


class Question(BaseModel):
    """What you want to know."""

    question: str = Field(
        min_length=3,
        max_length=1_000,
        description="A question that the documents may answer, such as: When does the lease end, and who may end it?",
    )
    folder: Folder = Field(".", description="The folder to search. Leave it empty for the whole workspace.")
    report: ReportPath = Field(
        "research.md",
        title="Report file",
        description="Where the report is written in the workspace. You see it before it is written.",
    )

    @field_validator("question")
    @classmethod
    def _question_is_one_paragraph(cls, question: str) -> str:
        return " ".join(question.split())


class Searches(BaseModel):
    """Searches that are still needed."""

    searches: list[Annotated[str, StringConstraints(max_length=200)]] = Field(
        [], description="Words or short phrases, each as it may stand in a line."
    )


class Source(BaseModel):
    """A line of a document."""

    path: str = Field(description="The path of the document.")
    line: int = Field(description="The number of the line.")


class Claim(BaseModel):
    """A part of the answer, and what shows it."""

    text: str = Field(min_length=1, max_length=2_000, description="What holds, in a sentence.")
    sources: list[Source] = Field([], max_length=10, description="The lines that show it.")


class Answer(BaseModel):
    """An answer from documents."""

    answer: str = Field(min_length=1, max_length=5_000, description="The answer, in a few sentences.")
    claims: list[Claim] = Field([], max_length=20, description="What the answer says, one by one, with its sources.")


class Found(BaseModel):
    """An answer, and where it comes from. `sources`: the lines that show it, as path:line, all of which were read.

    `without_evidence`: what the model said and named no such line for. `report`: what became of its file.
    """

    done: str
    answer: str
    sources: list[str]
    without_evidence: list[str]
    report: str


@workflow("documents.research", title="Research a question", category=DOCUMENTS, workspace="required", rounds=20)
async def research_question(flow: Flow[Question]) -> Found:
    """Answers a question from the documents of a workspace, with the path and the line of every source."""
    asked = flow.input
    listed = await flow.tool("documents.find", patterns=[asked.folder])
    if not (files := [path for path in listed["files"] if path != asked.report]):
        raise ToolError(f"There are no documents in {asked.folder!r} of this workspace.", "not_found")
    passages: list[Passage] = []
    searched: dict[str, int] = {}
    for number in range(ROUNDS):
        flow.progress(number, STEPS, "Planning the searches")
        wanted = await flow.agent(_plan(asked, files, searched, passages), tools=[], output=Searches, rounds=4)
        if not (new := _new(wanted.searches, searched)):
            break
        flow.progress(number + 0.5, STEPS, f"Searching for {', '.join(new)}")
        passages += await _read(flow, new, searched, passages)
    searches = [f"{words}: {_lines(count)}" for words, count in searched.items()]
    if not passages:
        flow.progress(STEPS, STEPS, NOTHING)
        tried = f"Searched for {', '.join(searched)}." if searched else "The model proposed no searches."
        answer = f"No evidence: the documents say nothing that these searches find. {tried}"
        return Found(done=NOTHING, answer=answer, sources=[], without_evidence=[], report="Not written.")
    flow.progress(ROUNDS, STEPS, f"Answering from {_count(passages)}")
    told = ANSWER.format(question=asked.question, rule=RULE, passages=_told(passages))
    found = await flow.agent(told, tools=[], output=Answer, rounds=4)
    shown, unshown, text = report_of(asked.question, found, passages, searches)
    flow.progress(ROUNDS + 1, STEPS, "The report is waiting for approval")
    written = await deliver(flow, asked.report, text, f"{asked.question} {_count(passages)} read.")
    flow.progress(STEPS, STEPS, "Done")
    answer = found.answer if shown else f"No evidence: {NO_EVIDENCE} The model said: {found.answer}"
    done = f"Answered from {_lines(len(shown))} of the documents." if shown else "Answered without evidence."
    return Found(done=done, answer=answer, sources=shown, without_evidence=unshown, report=written)


async def _read(
    flow: Flow[Question], new: Sequence[str], searched: dict[str, int], passages: Sequence[Passage]
) -> list[Passage]:
    """Run these searches side by side, and read around what they find. Counts in `searched` what each found."""
    asked = flow.input
    told: dict[str, Any] = {"folder": asked.folder, "without": [asked.report]}
    results = await flow.gather(*[flow.tool("documents.search", words=words, **told) for words in new])
    found = [result["found"] for result in results]
    searched |= {words: len(each) for words, each in zip(new, found, strict=True)}
    reads = [
        _or_none(flow, path=each.path, first=each.first, last=each.last, most=TEXT_MOST)
        for each in windows(found, passages, PASSAGES_MOST)
    ]
    return [Passage.of(read) for read in await flow.gather(*reads) if read]


def _or_none(flow: Flow[Question], **excerpt: Any) -> Any:
    """Return an awaitable of an excerpt; of None if it cannot be read any more."""
    reading = flow.tool("documents.read", **excerpt)

    async def read() -> Any:
        try:
            return await reading
        except ToolError as error:
            if error.code in STOPPED:
                raise
            return None

    return read()


def _new(proposed: Sequence[str], searched: dict[str, int]) -> list[str]:
    """Return the searches that were not made yet, each once, on one line, and as people can read them."""
    known, new = {words.casefold() for words in searched}, list[str]()
    for words in (" ".join(each.split()) for each in proposed):
        if len(words) > 1 and words.casefold() not in known and can_be_shown(words):
            known.add(words.casefold())
            new.append(words)
    return new[:SEARCHES_MOST]


def _plan(asked: Question, files: Sequence[str], searched: dict[str, int], passages: Sequence[Passage]) -> str:
    more = f" and {len(files) - FILES_TOLD:,} more" if len(files) > FILES_TOLD else ""
    return SEARCH.format(
        question=asked.question,
        files=json.dumps(list(files[:FILES_TOLD]), ensure_ascii=False) + more,
        searched=json.dumps(searched, ensure_ascii=False) if searched else "nothing",
        most=SEARCHES_MOST,
        rule=RULE,
        passages=_told(passages) if passages else "nothing",
    )


def report_of(
    question: str, found: Answer, passages: Sequence[Passage], searches: Sequence[str]
) -> tuple[list[str], list[str], str]:
    """Return the sources that were really read, as path:line; the claims without any; and the report in Markdown.

    A source that was not read is left out, whoever named it. Every other one is quoted from its document.
    """
    shown: dict[str, None] = {}
    supported, unshown, dropped = list[str](), list[str](), dict[str, None]()
    for claim in found.claims:
        sources = [(each, found_in(passages, each.path, each.line)) for each in claim.sources]
        dropped |= {f"{' '.join(each.path.split())}:{each.line}": None for each, place in sources if place is None}
        places = list(dict.fromkeys(place for _, place in sources if place))
        if not places:
            unshown.append(" ".join(claim.text.split()))
            continue
        shown |= {f"{path}:{line}": None for path, line, _ in places}
        named = [f"{code(path)}, line {line}:\n\n{quoted(text)}" for path, line, text in places]
        supported.append("\n\n".join([f"**{' '.join(claim.text.split())}**", *named]))
    answer = [found.answer] if supported else [NO_EVIDENCE, "## Said without evidence", found.answer]
    parts = [f"# {question}", *answer]
    if supported:
        parts += ["## What shows it", *supported]
    if unshown:
        parts += ["## Claims without evidence", "\n".join(f"- {claim}" for claim in unshown)]
    if dropped:
        parts += ["## Sources that were named, and not read", "\n".join(f"- {code(each)}" for each in dropped)]
    parts += ["## What was read", "\n".join(f"- {code(p.path)}, lines {p.first} to {p.last}" for p in passages)]
    parts += ["## Searches", "\n".join(f"- {each}" for each in searches)]
    return list(shown), unshown, "\n\n".join(parts) + "\n"


def _told(passages: Sequence[Passage]) -> str:
    return set_apart("\n\n".join(passage.text for passage in passages))


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _count(passages: Sequence[Passage]) -> str:
    return "1 passage" if len(passages) == 1 else f"{len(passages)} passages"
