"""Questions: a policy asks a person something, or whether it may go on, and waits for as long as that takes."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeVar, overload

from pydantic import BaseModel

from agents.engine.decisions import DECISIONS, Ask, Decision
from agents.engine.errors import ToolError
from agents.engine.ledger import JSON, Step, digest
from agents.engine.paths import HUMAN, card
from agents.engine.references import holds_secrets
from agents.engine.runtime.action import Action
from agents.engine.runtime.caller import Caller
from agents.engine.schema import check_schema, parse, problems, schema_of, schema_problems
from agents.engine.secrets import hide, hide_in

Form = TypeVar("Form", bound=BaseModel)

FIELD_ORDER = "propertyOrder"
"""The key of a form's schema that lists its fields in order: objects are recorded with their names sorted."""
WHOLE = ""
"""The field of a problem with an answer as a whole."""

TAKEN = "answer_taken"
"""The code of the note that a policy has received an answer: from then on the answer is not judged again."""

CLOSED = {
    Decision.EXPIRED: "Nobody answered in time.",
    Decision.CANCELLED: "The question was closed before anybody answered it.",
}
"""The messages for questions that nobody answered. The state of the decision is the code of the error."""

ASK_AT_START = "make it a field of the workflow's input, typed SecretStr"
TAKEN_MESSAGE = "The policy received this answer, which fitted its question."
APPROVAL_TAKEN = "The policy received this approval, which was of what it asks about."
ANOTHER_QUESTION = "The question has changed since this was answered."
ASKED_MOST = 4
"""How often a policy asks for one approval whose words are others whenever it runs."""


def question_digest(question: str, choices: Sequence[str] | None, schema: dict[str, JSON] | None) -> str:
    """Return the digest of one exact question, as a person is shown it."""
    return digest({"question": question, "choices": list(choices or ()), "schema": schema})


def approval_digest(title: str, details: str) -> str:
    """Return the digest of what a policy asks to be approved, as a person is shown it."""
    return digest({"title": title, "details": details})


def answer_problems(asked: dict[str, JSON], answer: JSON) -> dict[str, list[str]]:
    """Return what is wrong with an answer to a recorded question, by field; `asked` is the payload of its call.

    The field of what concerns the whole answer is "". An answer is a text, one of the `choices` if there are any, or
    whatever fits the `schema`.
    """
    if isinstance(schema := asked.get("schema"), dict):
        return _by_field(schema_problems(schema, answer))
    return _text_problems(asked.get("choices"), answer)


def question_error(asked: dict[str, JSON]) -> str | None:
    """Return why this payload of a question cannot be shown to anybody; None if it can."""
    words, choices, schema = asked.get("question"), asked.get("choices"), asked.get("schema")
    if not isinstance(words, str) or not words.strip():
        return "A question needs its words: {'ask': 'question', 'question': 'Which one?'}."
    if choices is not None and not (isinstance(choices, list) and choices and all(map(_is_words, choices))):
        return "The choices of a question are a list of texts."
    if schema is None:
        return None
    try:
        check_schema(schema)
    except (TypeError, ValueError) as error:
        return f"The schema of a question is a JSON Schema of its answer. {error}"
    return None if isinstance(schema, dict) else "The schema of a question is an object."


class Asking(Caller):
    """The part of a context by which a policy asks people."""

    @overload
    def ask(
        self,
        question: str,
        *,
        choices: Sequence[str] | None = None,
        who: Literal["another"] | None = None,
        hours: float | None = None,
        key: str | None = None,
    ) -> Coroutine[Any, Any, str]: ...
    @overload
    def ask(
        self,
        question: type[Form],
        *,
        who: Literal["another"] | None = None,
        hours: float | None = None,
        key: str | None = None,
    ) -> Coroutine[Any, Any, Form]: ...
    def ask(
        self,
        question: str | type[BaseModel],
        *,
        choices: Sequence[str] | None = None,
        who: Literal["another"] | None = None,
        hours: float | None = None,
        key: str | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Ask a person, and return the answer: a text, one of `choices`, or a filled-in form (a pydantic model).

        The words of a form's question are the first paragraph of its docstring. `who="another"`: somebody other than
        whoever asked for the turn must answer. `hours`: how long it waits; by default as long as an approval.

        An answer that the form refuses when the policy first receives it is asked for again, with what was answered
        filled in. Later it is not judged again: one that no longer fits, because the form has changed since, raises
        ToolError `invalid_input`. Also raises ToolError `expired` or `cancelled` if nobody answers, and ValueError or
        TypeError for what is no question.
        """
        asked = _question(question, choices) | _who(who)
        form = question if isinstance(question, type) else None
        _check_hours(hours)
        return self._ask(self.take_path(key), form, asked, hours)

    def approve(
        self,
        title: str,
        details: str = "",
        *,
        who: Literal["another"] | None = None,
        hours: float | None = None,
        key: str | None = None,
    ) -> Coroutine[Any, Any, bool]:
        """Ask a person whether the policy may go on, and return whether they approved.

        `details` say what is approved, in as many words as it takes; `who` and `hours` are as for `ask`. Raises
        ToolError `expired` or `cancelled` if nobody decides.
        """
        if not _is_words(title) or not isinstance(details, str):
            raise TypeError("ctx.approve takes a title and details, both texts: ctx.approve('Send it?', details='...')")
        _check_hours(hours)
        asked = {"ask": Ask.APPROVE.value, "reason": title, "details": details, **_who(who)}
        return self._approve(self.take_path(key), asked | {"digest": approval_digest(title, details)}, hours)

    async def _approve(self, path: str, asked: dict[str, JSON], hours: float | None) -> bool:
        """Ask until somebody has decided about exactly this: what they approved may be other words than today's."""
        place, named = path, asked["digest"]
        for number in range(1, ASKED_MOST + 1):
            if (await self._decision_at(place, asked, hours)).get("decision") != Decision.APPROVE:
                return False
            if not self.recorder.view.call(card(path, number)) and self._takes_approval(place, asked["digest"]):
                return True
            place = card(path, number)
            asked = asked | {"digest": digest([named, card("", number)])}
        raise ToolError("The question to the person changed each time, so nothing was done.", "changed_since")

    def _takes_approval(self, place: str, named: JSON) -> bool:
        """Return whether the approval at `place` is of what has this digest, or was taken before."""
        recorder = self.recorder
        if self._was_taken(place):
            return True
        asked = recorder.view.call(place)
        if asked is None or asked.payload["payload"].get("digest") != named:
            return False
        recorder.stage(Step("runtime", "note", {"code": TAKEN, "message": APPROVAL_TAKEN}, path=place))
        return True

    def _was_taken(self, place: str) -> bool:
        return any(note.payload.get("code") == TAKEN for note in self.recorder.view.at(place, "note"))

    def _was_another(self, place: str, words: JSON) -> dict[str, list[str]]:
        """Return the problem with an answer to a question in other words than today's; none if it was taken before."""
        asked = self.recorder.view.call(place)
        same = asked is None or asked.payload["payload"].get("question") == hide(str(words))
        return {} if same or self._was_taken(place) else {WHOLE: [ANOTHER_QUESTION]}

    async def _ask(self, path: str, form: type[BaseModel] | None, asked: dict[str, JSON], hours: float | None) -> Any:
        """Ask until there is an answer that today's form takes, or that it took before."""
        place, number, named = path, 0, asked["digest"]
        while True:
            given: JSON = (await self._decision_at(place, asked, hours)).get("answer")
            wrong = _form_problems(form, given) if form else _text_problems(asked.get("choices"), given)
            if form is None:  # a form judges all of its answer, whatever its words were
                wrong = self._was_another(place, asked["question"]) | wrong
            number += 1
            if again := self.recorder.view.call(card(path, number)):
                wrong = again.payload["payload"].get("problems", wrong)
            elif self._takes(place, wrong):
                return parse(form, given) if form else given
            place = card(path, number)
            asked = asked | {"draft": given, "problems": wrong, "digest": digest([named, card("", number)])}

    def _takes(self, place: str, wrong: dict[str, list[str]]) -> bool:
        """Judge the answer at `place`, and return whether it is taken; if not, the question is asked again.

        That it was taken is noted, together with whatever the policy does next. Raises ToolError for an answer that was
        taken before and does not fit any more.
        """
        recorder = self.recorder
        before = self._was_taken(place)
        if before and wrong:
            told = "; ".join(f"{field or 'answer'}: {' '.join(words)}" for field, words in wrong.items())
            raise ToolError(f"The recorded answer does not fit the question any more. {told}", "invalid_input")
        if not before and not wrong:
            recorder.stage(Step("runtime", "note", {"code": TAKEN, "message": TAKEN_MESSAGE}, path=place))
        return not wrong

    async def _decision_at(self, place: str, asked: dict[str, JSON], hours: float | None) -> dict[str, JSON]:
        """Ask at this path, and return the decision. Raises ToolError if nobody decided.

        A question that was asked already expires as it was recorded.
        """
        recorder = self.recorder
        if recorded := recorder.view.call(place):
            expires_at = recorded.payload["payload"].get("expires_at", "")
        else:
            given = self.limits.approval_hours if hours is None else hours
            expires_at = (recorder.services.now() + timedelta(hours=given)).isoformat()
        decided = (await self.call_at(place, Action(HUMAN, asked | {"expires_at": expires_at})))[-1].payload
        if (word := decided.get("decision")) in CLOSED:
            raise ToolError(decided.get("reason") or CLOSED[word], DECISIONS[Decision(word)].state)
        return decided


def _question(question: str | type[BaseModel], choices: Sequence[str] | None) -> dict[str, JSON]:
    """Return the payload of a question. Raises TypeError or ValueError for what is none."""
    if isinstance(question, type) and issubclass(question, BaseModel):
        if choices is not None:
            raise TypeError("a form has its fields, and no choices besides")
        if holds_secrets(question):
            raise TypeError(f"{question.__name__} asks for a secret, and answers are recorded: {ASK_AT_START}")
        schema = schema_of(question)
        if schema.get("type") != "object":
            raise TypeError(f"a form has fields: {question.__name__} is of the type {schema.get('type')!r}")
        words = _words_of(question)
        inside = {name: _in_order(each) for name, each in schema.get("$defs", {}).items()}
        schema = _in_order(schema) | ({"$defs": inside} if inside else {})
        if hide_in(schema) != schema:
            raise ValueError("a form is shown to people: none of the site's secrets may stand in it")
        words = hide(words)
        asked: dict[str, JSON] = {"question": words, "schema": schema}
        named = question_digest(words, None, schema)
    else:
        given: object = question
        if not _is_words(given):
            raise TypeError("a question is a text, or a form: a pydantic model")
        # Without secrets from the beginning: an answer is one of the choices as they are shown.
        asked = hide_in({"question": question, **({} if choices is None else {"choices": list(choices)})})
        named = question_digest(asked["question"], asked.get("choices"), None)
    if why := question_error(asked):
        raise ValueError(why)
    return {"ask": Ask.QUESTION.value, **asked, "digest": named}


def _in_order(schema: dict[str, JSON]) -> dict[str, JSON]:
    """Return the schema of an object with the order of its fields."""
    return schema | {FIELD_ORDER: list(schema["properties"])} if "properties" in schema else schema


def _words_of(form: type[BaseModel]) -> str:
    """Return the question that a form asks: the first paragraph of its docstring, or else its title."""
    paragraph = inspect.cleandoc(form.__doc__ or "").partition("\n\n")[0]
    return " ".join(paragraph.split()) or form.model_config.get("title") or form.__name__


def _who(who: str | None) -> dict[str, JSON]:
    if who not in (None, "another"):
        raise ValueError(f"`who` is 'another', or left out, not {who!r}")
    return {"who": who} if who else {}


def _check_hours(hours: float | None) -> None:
    if hours is not None and not hours > 0:
        raise ValueError(f"a question waits for more than 0 hours, not {hours:g}")


def _is_words(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _form_problems(form: type[BaseModel], answer: JSON) -> dict[str, list[str]]:
    if not isinstance(answer, dict):
        return {WHOLE: ["The answer is an object with the fields of the form."]}
    return _by_field(problems(form, answer))


def _text_problems(choices: list[str] | None, answer: JSON) -> dict[str, list[str]]:
    if choices and answer not in choices:
        return {WHOLE: [f"Choose one of: {', '.join(choices)}."]}
    return {} if _is_words(answer) else {WHOLE: ["The answer is a text."]}


def _by_field(found: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    by_field: dict[str, list[str]] = defaultdict(list)
    for place, why in found:
        by_field[place].append(why.removeprefix("Value error, "))  # pydantic's, before a validator's own words
    return dict(by_field)
