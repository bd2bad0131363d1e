"""The sentences that the demo model understands. A new tool needs one entry in SENTENCES."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from agents.engine.ledger import JSON
from agents.engine.tools.tool import wire_name
from agents.providers.demo import arguments as make
from agents.providers.demo.arguments import Words


@dataclass(frozen=True)
class Sentence:
    """A sentence: how people ask for one tool, and how the demo model talks about it.

    `example` is a request that the demo model must understand; `guide` says which of them the help shows. `patterns`
    match a whole request, ignoring case and without polite words around it; a space stands for any whitespace. Their
    named groups are the tool's arguments, unless `arguments` builds them; it returns None if the text is not such a
    request after all. The groups `content`, `text` and `json` extend to the end of the message, even across an "and".

    `does` completes "I will ...". `told` introduces the result; if it ends with a colon, the beginning of the result is
    quoted after it. Both may name arguments. `first` returns a request, in words, that has to be carried out before;
    its result is then the word `found`. `skill` names the skill that the tool belongs to.
    """

    tool: str
    example: str = ""
    patterns: tuple[str, ...] = ()
    does: str = ""
    told: str = ""
    arguments: Callable[[Words], dict[str, JSON] | None] = dict
    first: Callable[[Words], str] = lambda words: ""
    skill: str = ""

    @property
    def name(self) -> str:
        """The name under which a model sees the tool."""
        return wire_name(self.tool)

    @property
    def by_name(self) -> bool:
        """Whether this is the general sentence that names its tool: `use NAME with {...}`."""
        return not self.patterns

    @cached_property
    def compiled(self) -> tuple[re.Pattern[str], ...]:
        """The compiled patterns. Whitespace matches only from its first character, so that a long run is tried once."""
        blank = r"(?<!\s)\s++"
        return tuple(re.compile(each.replace(" ", blank), re.IGNORECASE | re.DOTALL) for each in self.patterns)


QUOTED = r"""`[^`]+`|"[^"]+"|“[^“”]+”|'[^']+'"""
IT = r"it|((the|this|that) )?(attached )?(file|attachment)"
"""Words that stand for a file named before."""
PATH = rf"(the )?((file|folder) )?(?P<path>{QUOTED}|{IT}|\S*[^\s:])"
FILE = rf"(?P<path>{QUOTED}|{IT}|[^\s./]*+[./]\S+)"
"""Like PATH, but a single word must look like a file: `notes.md`, not `german`."""
ALL = r"((?P<all>all|every|each) )?"
"""For a change in more than one place."""
THE = r"((a|an|the|my|all|me|new|short|of) )*"
"""Small words that change nothing."""
HERE = r" (here|(in|of) (the|my|your|this|our) (workspace|folder|directory))"
"""The conversation's own folder."""

IN = r"(?P<in>in) (?P<number>\d{1,6}|an?|one|two|three|five|ten) (?P<unit>minute|hour|day)s?"
AT = (
    r"every (?P<day>day|weekday|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r" at (?P<hour>\d{1,2})(:(?P<minute>\d\d))?( in (?P<zone>\w+/\w+))?"
)
EVERY = r"every (?P<number>\d{1,6}) (?P<unit>minute|hour|day)s"
"""When a trigger fires: once after a time, or again and again."""
NOTHING_SAID = r"((that|about) )?(me|us|it|this|that|them|(everything|all)\b.*)"
"""What names no memory: whoever wants to forget all of this says which, or goes to the account page."""

SENTENCES = (
    Sentence(
        "files.list",
        "list the files",
        (
            rf"(list|show|see) {THE}(files|workspace)({HERE}| (in|of|under) {PATH})?",
            rf"(what|which) files (are there|are|do (you|we|i) have)({HERE}| in {PATH})?",
        ),
        does="list the files",
        told="These are the files:",
        arguments=lambda words: {"path": words.get("path", ".")},
    ),
    Sentence(
        "results.read",
        "read the result 7:1/0 from 10666",
        (r"(read|show)( on in)?( the)? result (?P<result>\d+:[\w/.-]*[\w/])( from( character)? (?P<offset>\d+))?",),
        does="read more of the result `{result}`",
        told="This is the next part of the result `{result}`:",
        arguments=lambda words: {"result": words["result"], "offset": int(words.get("offset") or 0)},
    ),
    Sentence(
        "files.read",
        "read notes.md",
        (
            rf"(read|open|show|print|display|cat)( me)? {PATH}",
            rf"what( is|.s) in {PATH}",
            rf"what does {PATH} say",
        ),
        does="read `{path}`",
        told="`{path}` says:",
    ),
    Sentence(
        "shell.program",
        "run the program ls -la",
        (r"(run|execute) the program:? (?P<line>`[^`]+`|.+)",),
        does="run this program",
        told="This is what the program printed:",
        arguments=make.program,
    ),
    Sentence(
        "shell.run",
        "run ls -la",
        (rf"(run|execute)( the)?( shell)?( command)?:? (?P<command>{QUOTED}|.+)",),
        does="run `{command}`",
        told="This is what `{command}` printed:",
    ),
    Sentence(
        "chart.show",
        "chart: Jan 3, Feb 5, Mar 4",
        (rf"((draw|show|make) )?{THE}((?P<kind>bar|line) )?(chart|graph)( (of|about|for|with))?:?\s*(?P<data>.+)",),
        does="draw the chart “{title}”",
        told="The chart “{title}” is above.",
        arguments=make.chart,
    ),
    Sentence(
        "table.show",
        "table: Name, Age; Ann, 34; Bob, 28",
        (rf"((draw|show|make) )?{THE}table( (of|about|for|with))?(?P<title>[^:\n]*):\s*(?P<data>.+)",),
        does="show the table “{title}”",
        told="The table “{title}” is above.",
        arguments=make.table,
    ),
    Sentence(
        "report.write",
        "write a report about the files",
        (rf"(write|make|create) {THE}report( (about|on|of|for))? (?P<topic>[^:\n]+)(:\s*(?P<text>.+))?",),
        does="write the report “{title}”",
        told="I wrote the report “{title}”. You can download it above.",
        arguments=make.report,
        first=make.research,
    ),
    Sentence(
        "files.write",
        "write notes.md: buy milk",
        (
            rf"(write|create|save|make) {THE}(file )?{PATH}(:| with\b( the)?( (text|content))?:?|\n)\s*(?P<content>.+)",
            rf"(write|save|put) (?P<content>{QUOTED}|.+?) (to|into|in) {FILE}",
        ),
        does="write `{path}`",
        told="I wrote `{path}`.",
        arguments=make.writing,
    ),
    Sentence(
        "files.edit",
        "in notes.md replace milk with bread",
        (
            rf"in {PATH},? (replace|change) {ALL}(?P<old>{QUOTED}|.+?) (with|by|to|into) (?P<new>{QUOTED}|.+)",
            rf"(replace|change) {ALL}(?P<old>{QUOTED}|.+?) (with|by|to|into) (?P<new>{QUOTED}|.+?) in {PATH}",
            rf"(remove|delete) {ALL}(?P<old>{QUOTED}|.+?) from {PATH}",
        ),
        does="change `{path}`",
        told="I changed `{path}`.",
        arguments=make.edit,
    ),
    Sentence(
        "tools.find",
        "find tools for tables",
        (rf"(find|look|search)( for)? ((a|another|other|more) )?tools? (for|to|that|which) (?P<words>{QUOTED}|.+)",),
        does="look for tools for `{words}`",
        told="This is what I found:",
    ),
    Sentence(
        "files.search",
        "search for milk",
        (
            rf"(search|grep|look(?! at\b))( (in )?{THE}files)?( for)? (?P<pattern>/.+/|{QUOTED}|.+?)"
            rf"( in ({THE}files|{PATH}))?",
            rf"(find|where is) (?P<pattern>/.+/|{QUOTED}|.+?)( in ({THE}files|{PATH}))?",
        ),
        does="search for `{pattern}`",
        told="This is what the search for `{pattern}` found:",
        arguments=make.search,
    ),
    Sentence(
        "skills.activate",
        "activate the skill numbers",
        (
            rf"(activate|enable|turn on|take up|load|use) (the )?skill:? (?P<name>{QUOTED}|[\w-]+)",
            rf"(activate|enable|turn on|take up) (the )?(?P<name>{QUOTED}|[\w-]+)( skill)?",
        ),
        does="activate the skill `{name}`",
        told="The skill `{name}` is active.",
    ),
    Sentence(
        "skills.deactivate",
        "deactivate the skill numbers",
        (rf"(deactivate|disable|turn off|put away|unload) (the )?(skill:? )?(?P<name>{QUOTED}|[\w-]+)( skill)?",),
        does="deactivate the skill `{name}`",
        told="The skill `{name}` is no longer active.",
    ),
    Sentence(
        "blueprints.propose",
        "propose a blueprint called Refunds for money back: look up the order first",
        (
            rf"(propose|suggest|make|write) {THE}blueprint (called|named) (?P<name>{QUOTED}|[^:\n]+?)"
            r" (for|when) (?P<when>[^:\n]+):\s*(?P<text>.+)",
        ),
        does="propose the blueprint “{name}”",
        told="The blueprint “{name}” is proposed. Agents are told of it once an administrator enables it.",
    ),
    Sentence(
        "trigger.create",
        "remind me in one minute to look at the logs",
        (
            rf"remind me {IN} (to|of|about) (?P<text>.+)",
            rf"remind me to (?P<text>.+?) {IN}",
            rf"(remind me )?{AT}(:|,)? (to )?(?P<text>.+)",
            rf"(remind me )?{EVERY}(:|,)? (to )?(?P<text>.+)",
        ),
        does="set a trigger: “{text}”",
        told="The trigger is set: “{text}”. You find it under Triggers.",
        arguments=make.trigger,
    ),
    Sentence(
        "trigger.list",
        "list my triggers",
        (rf"(list|show|see) {THE}(triggers|reminders)", r"(what|which) (triggers|reminders) (are there|do i have)"),
        does="list your triggers",
        told="These are your triggers:",
    ),
    Sentence(
        "trigger.delete",
        "delete trigger 3",
        (r"(delete|remove|cancel) (the |my )?(trigger|reminder)( number)? (?P<id>\d{1,9})",),
        does="delete trigger {id}",
        told="Trigger {id} is deleted.",
        arguments=lambda words: {"id": int(words["id"])},
    ),
    Sentence(
        "memory.save",
        "remember that I prefer short answers",
        (r"((?P<always>always) )?(remember|memori[sz]e|keep in mind)(:|,)?( that)? (?P<text>.+)",),
        does="remember “{text}”",
        told="I will remember it. You find it under Memory in your account.",
        arguments=make.memory,
    ),
    Sentence(
        "memory.search",
        "what do you know of me",
        (
            rf"what (do|did) you (know|remember) (of|about) (me|(?P<words>{QUOTED}|.+))",
            r"what (do|did) you remember",
            r"(show|list) (me )?(my memory|(all )?my memories)",
        ),
        does="look at what I remember",
        told="This is what I remember:",
    ),
    Sentence(
        "memory.forget",
        "forget memory 3",
        (
            r"forget (the )?memory( number)? (?P<id>\d{1,15})",
            rf"(forget|do not remember)(?! {NOTHING_SAID}\W*$)( that| about)? (?P<words>.+)",
        ),
        does="forget memory {id}",
        told="Memory {id} is forgotten.",
        arguments=make.forgetting,
        first=lambda words: "" if "id" in words else f"what do you remember about {words['words']}",
    ),
    Sentence(
        "csv.summary",
        "summarise sales.csv",
        (rf"(summari[sz]e|sum up|describe|analy[sz]e) {PATH}",),
        does="summarise `{path}`",
        told="This is the summary of `{path}`:",
        skill="numbers",
    ),
)
"""The sentences in the order in which they are tried: the first that fits is used."""

SENTENCE_OF = {sentence.name: sentence for sentence in SENTENCES}
