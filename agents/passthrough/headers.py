"""Which headers pass: all but those that concern one connection, one host, or somebody's access."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agents.engine.secrets import SHORTEST
from agents.passthrough.counting import EVENT_STREAM, READABLE
from agents.passthrough.errors import Refused

Header = tuple[bytes, bytes]
_JSON = re.compile(r'(application/json(\s*;\s*charset="?utf-?8"?)?)?')
_NONE = re.compile(r"q=0(\.0*)?")
"""How a client says that it does not take an encoding."""

OF_CONNECTION = frozenset(
    name.encode()
    for name in (
        *("connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"),
        *("te", "trailer", "trailers", "transfer-encoding", "upgrade"),
    )
)
"""Hop-by-hop: RFC 9110, section 7.6.1."""
NOT_SENT = OF_CONNECTION | frozenset(
    name.encode()
    for name in (
        *("host", "content-length", "expect", "accept-encoding"),  # written anew
        *("authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie"),  # the client's access is to this site
        *("openai-organization", "openai-project"),  # of the site's account at the provider: the key says which
        *("forwarded", "via", "x-real-ip", "origin", "referer"),  # who calls is nobody else's business
    )
)
"""Headers of the client that the model server does not get."""
NOT_SENT_PREFIXES = (
    *(b"x-forwarded-", b"sec-"),
    *(b"x-litellm-", b"x-portkey-", b"helicone-"),  # tell a gateway to ask another model, or somebody else
)
NOT_RETURNED = OF_CONNECTION | frozenset(
    name.encode()
    for name in (
        *("set-cookie", "server", "openai-organization", "openai-project"),
        # What a browser would apply to this site's own pages.
        *("alt-svc", "clear-site-data", "strict-transport-security", "nel", "report-to", "reporting-endpoints"),
        *("content-security-policy", "content-security-policy-report-only", "service-worker-allowed"),
    )
)
"""Headers of the model server that the client does not get."""
NOT_RETURNED_PREFIXES = (b"access-control-",)
UNBUFFERED = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
"""Added to a stream that lacks them: proxies in front of the site, such as nginx, would hold it back."""


def to_server(headers: Sequence[Header]) -> Iterator[tuple[str, str]]:
    """Yield the client's headers that the model server gets. It may answer in the encodings that are counted here."""
    for name, value in _passing(headers, NOT_SENT, NOT_SENT_PREFIXES):
        yield name.decode("latin-1"), _text(value)
    accepted = [one.partition(";") for one in value_of(headers, b"accept-encoding").split(",")]
    weights = {name.strip(): weight.strip() for name, _, weight in accepted}
    taken = [name for name in READABLE if not _NONE.fullmatch(weights.get(name, "q=0"))]
    yield "Accept-Encoding", ", ".join(taken) or "identity"


def to_client(headers: Sequence[Header], key: str) -> list[Header]:
    """Return the model server's headers that the client gets. None of them repeats `key`, which is the site's."""
    passing = [each for each in _passing(headers, NOT_RETURNED, NOT_RETURNED_PREFIXES) if not repeats(each[1], key)]
    names = {name for name, _ in passing}
    if value_of(passing, b"content-type").startswith(EVENT_STREAM):
        passing += [each for each in UNBUFFERED if each[0] not in names]
    return passing


def value_of(headers: Sequence[Header], name: bytes) -> str:
    """Return the value of a header in lower case; "" if there is none, and both of one that is there twice."""
    return ", ".join(value.decode("latin-1").strip().lower() for each, value in headers if each.lower() == name)


def check_body(headers: Sequence[Header]) -> None:
    """Raise Refused (415) unless a body is sent as JSON: as a form, a server could find another model in it."""
    if value_of(headers, b"content-encoding") not in ("", "identity"):
        raise Refused(415, "encoded_body", "Send the body as it is, without a Content-Encoding.")
    if not _JSON.fullmatch(value_of(headers, b"content-type")):
        raise Refused(415, "not_json", "Send JSON, as `Content-Type: application/json`.")


def repeats(text: bytes, key: str) -> bool:
    """Whether the site's key stands in what the model server sent. What is too short for a secret is none."""
    return len(key) >= SHORTEST and key.encode() in text


def _passing(headers: Sequence[Header], not_these: frozenset[bytes], nor_those: tuple[bytes, ...]) -> Iterator[Header]:
    """Yield the headers that pass, with their names in lower case. `Connection` may name others that do not."""
    named = (value for name, value in headers if name.lower() == b"connection")
    hops = {hop.strip().lower() for value in named for hop in value.split(b",")}
    for name, value in headers:
        lower = name.lower()
        if lower not in not_these and lower not in hops and not lower.startswith(nor_those):
            yield lower, value


def _text(value: bytes) -> str:
    try:
        return value.decode()  # aiohttp writes UTF-8
    except UnicodeDecodeError:
        return value.decode("latin-1")
