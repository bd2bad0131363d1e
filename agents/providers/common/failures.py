"""Failures of a model server: the SDK's exceptions as the ProviderError that the engine understands.

Temporary, so the same request may be sent again:
- `rate_limited`: 429, or rate_limit_exceeded in the stream
- `server_error`: 5xx, or the like in the stream
- `unreachable`: no connection
- `timeout`: no answer, or a silence in it
- `stream_broken`: the answer ended before it was whole
- `empty_answer`: neither text nor calls

Permanent:
- `context_overflow`: more than the model can read
- `incomplete`: the answer was cut before it contained anything
- `key_refused`: 401, some 403 and 400, the key is wrong, expired or not allowed to do this
- `insufficient_quota`: what was paid for is used up, or a budget; 402, and some 429
- `unknown_model`: there is no model of this name
- `unknown_address`: 404 or 405 for any other reason, the server has no such API
- `refused`: every other 4xx, the server rejects the request

`conversations.display.failure` has the words for each, which people read.
"""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from aiohttp import ClientConnectionError, ClientError
from httpx2 import HTTPError, TimeoutException
from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

from agents.engine.errors import ProviderError
from agents.engine.ledger import JSON
from agents.engine.secrets import SHORTEST
from agents.providers.common.values import as_object, as_objects, as_text

MESSAGE_CHARACTERS = 500
"""Characters of a server's message that are kept: enough for any API error, too few for a whole page of HTML."""

_OVERFLOW = re.compile(
    r"context[ _-]?(length|window|size|limit)"
    r"|(prompt|input|conversation|request) is too long"
    r"|maximum (number of tokens allowed|model length|input length)"
    r"|reduce the length of the (messages|prompt|input)"
    r"|inputs?\W* must have less than \d+ tokens",
    re.IGNORECASE,
)
"""How model servers and gateways word this error; OpenAI's code `context_length_exceeded` matches, too."""

_QUOTA = re.compile(
    r"insufficient_quota|billing_not_active|billing_hard_limit_reached|budget_?exceeded|exceeded_?budget"
    r"|budget has been exceeded|insufficient (credits|balance|funds)|credit balance is too low",
    re.IGNORECASE,
)
"""How providers and gateways say that what was paid for is used up.

Not "exceeded your current quota": Gemini says that of limits per minute, too, which pass.
"""

_KEY = re.compile(
    r"(invalid|incorrect|wrong|expired) api[ _-]?key|api[ _-]?key (not|is not|isn't) valid|invalid_api_key",
    re.IGNORECASE,
)
"""How providers say that the key is wrong, some of them with status 400."""

_NOT_ALLOWED = re.compile(r"\b(key|permissions?|access|authori[sz]\w*|credentials?)\b", re.IGNORECASE)
"""What a 403 speaks of if it is about the key; others are about a country, or about what was said."""

_NO_MODEL = re.compile(
    r"model_not_found|deployment_?not_?found|model_?access_denied|(unknown|no such) model|invalid model (name|id)\b"
    r"|not a valid model|\bmodels?\b[:/]?\s*['\"`]?[^\s'\"`]{0,200}['\"`]?,? *(is |was )?"
    r"(not found|(does|do)( not|n't) exist)",
    re.IGNORECASE,
)
"""How model servers and gateways say that they have no model of this name, or none for this key."""

_TEMPORARY = {
    "rate_limit_exceeded": "rate_limited",
    "server_error": "server_error",
    "vector_store_timeout": "timeout",
    "429": "rate_limited",
    "408": "timeout",
}
"""Codes and HTTP statuses of temporary errors, with our codes for them. Some servers give a status as the code."""


SDK_ERRORS = (OpenAIError, ClientError, HTTPError)
"""What the SDK raises: its own errors, and as they are those of its transport for what is no HTTP, or is an error whose
body breaks off.
"""


def opening_failed(error: Exception) -> ProviderError:
    """Return the error for a failure before the answer began."""
    if isinstance(error, APIStatusError):
        return _from_status(error)
    if isinstance(error, APITimeoutError) and not _is_cut_off(error):
        return ProviderError("The model server did not answer in time.", code="timeout", retryable=True)
    if isinstance(error, (APIConnectionError, ClientError, HTTPError)):
        return ProviderError(f"The model server cannot be reached: {_cause(error)}", code="unreachable", retryable=True)
    return ProviderError(f"The model server cannot be asked: {error}", code="refused")


def reading_failed(error: Exception) -> ProviderError:
    """Return the error for a failure in the middle of the answer."""
    if isinstance(error, TimeoutException) and not _is_cut_off(error):
        return ProviderError("The model server stopped sending its answer.", code="timeout", retryable=True)
    return stream_broken(_cause(error))


def stream_broken(why: str) -> ProviderError:
    """Return the error for an answer that ended before it was complete."""
    return ProviderError(f"The answer broke off: {why}", code="stream_broken", retryable=True)


def empty_answer() -> ProviderError:
    """Return the error for an answer with neither text nor calls."""
    return ProviderError("The model's answer was empty.", code="empty_answer", retryable=True)


def cut_while_empty(why: str) -> ProviderError:
    """Return the error for an answer that was cut before anything in it was complete."""
    return ProviderError(f"The answer was cut before it said anything: {why or 'no reason'}.", code="incomplete")


def reported(body: JSON) -> ProviderError:
    """Return the error that the server reported, `{code, message}`, after it had begun to answer."""
    code, whole = _words(body)
    message = whole[:MESSAGE_CHARACTERS]
    about = f"{code} {whole}"
    if _OVERFLOW.search(about):
        return ProviderError(message or "The conversation is too long for the model.", code="context_overflow")
    known = "server_error" if re.fullmatch(r"5\d\d", code) else _TEMPORARY.get(code or "server_error")
    if known is None or _QUOTA.search(about):
        status = int(code) if re.fullmatch(r"4\d\d", code) else 400
        return ProviderError(message or "The model failed.", code=_permanent(status, about))
    return ProviderError(message or "The model failed.", code=known, retryable=True)


def without_key(error: ProviderError, api_key: str) -> ProviderError:
    """Return the error without the API key in its message: some servers repeat what they were sent.

    A short key (`ollama`, `EMPTY`) is not a secret, and may be part of a word.
    """
    return ProviderError(
        error.message.replace(api_key, "[key]") if len(api_key) >= SHORTEST else error.message,
        code=error.code,
        retryable=error.retryable,
        wait_seconds=error.wait_seconds,
    )


def _from_status(error: APIStatusError) -> ProviderError:
    status = error.status_code
    code, whole = _words(error.body)
    message = f"HTTP {status}: {whole[:MESSAGE_CHARACTERS]}" if whole else f"HTTP {status}"
    about = f"{code} {whole}"
    if _QUOTA.search(about):  # whatever the status: waiting does not restore it
        return ProviderError(message, code="insufficient_quota")
    wait = _wait_seconds(error)
    if known := _TEMPORARY.get(str(status)):
        return ProviderError(message, code=known, retryable=True, wait_seconds=wait)
    if _OVERFLOW.search(about):  # even with status 500: it would be too long again
        return ProviderError(message, code="context_overflow")
    if status >= 500:
        return ProviderError(message, code="server_error", retryable=True, wait_seconds=wait)
    return ProviderError(message, code=_permanent(status, about))


def _permanent(status: int, about: str) -> str:
    """Return the code of an error that asking again does not mend. `about`: the server's own code and words."""
    if status == 402 or _QUOTA.search(about):
        return "insufficient_quota"
    if _KEY.search(about):
        return "key_refused"
    if _NO_MODEL.search(about):
        return "unknown_model"
    if status == 401 or (status == 403 and _NOT_ALLOWED.search(about)):
        return "key_refused"
    return "unknown_address" if status in (404, 405) else "refused"


def _words(body: JSON) -> tuple[str, str]:
    """Return the code and the message of an error body, or the text that is there instead; "" for what is missing.

    LiteLLM names a used-up budget only as the `type`; its code is the HTTP status. FastAPI, which many model servers
    use, gives `detail` instead: a text, or a list of errors.
    """
    if not isinstance(body, dict):
        text = as_text(body)
        return "", "" if text.startswith("<") else text  # a web page is not readable as a message
    code = "budget_exceeded" if body.get("type") == "budget_exceeded" else body.get("code")
    message = as_text(body.get("message")) or as_text(body.get("error")) or _detail(body.get("detail"))
    return (str(code) if isinstance(code, str | int) else ""), message


def _detail(detail: JSON) -> str:
    wrong = (f"{each.get('loc')}: {each.get('msg')}" for each in as_objects(detail))
    return as_text(detail) or as_text(as_object(detail).get("message")) or "; ".join(wrong)


def _is_cut_off(error: BaseException | None) -> bool:
    """Whether the connection was refused or lost, which the SDK's aiohttp transport reports as a timeout, too."""
    while error is not None and not isinstance(error, ClientConnectionError):
        error = error.__cause__
    return error is not None and not isinstance(error, TimeoutError)


def _cause(error: Exception) -> str:
    """Return the cause of an SDK error in words: the error's own text is only "Connection error."."""
    below = error.__cause__ or error
    return str(below) or type(below).__name__


def _wait_seconds(error: APIStatusError) -> float | None:
    """Return the wait that the server asks for: `retry-after-ms`, or Retry-After in seconds or as a date (RFC 9110)."""
    milliseconds = error.response.headers.get("retry-after-ms", "")
    wait = error.response.headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        return max(0.0, float(milliseconds) / 1000)
    with contextlib.suppress(ValueError):
        return max(0.0, float(wait))
    with contextlib.suppress(ValueError):
        then = parsedate_to_datetime(wait)
        return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    return None
