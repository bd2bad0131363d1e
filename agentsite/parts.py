"""The headers of the parts of a form, as multipart/form-data has them: which ones are read.

Django reads each line as a Content-Type of its own, in time that grows with the square of its parameters, and decodes
with whatever decoder a parameter of RFC 2231 names, such as `name*=punycode''a`. A form may have a thousand parts: one
of 1 MB took up to four seconds.
"""

from __future__ import annotations

from email.message import Message
from typing import Any

from django.http import multipartparser
from django.http.multipartparser import MultiPartParserError

from agentsite.headers import UTF_8

LINES_MOST = 8
"""Lines of a part's headers. Browsers send two."""
PARAMETERS_MOST = 50
"""Semicolons in them: of parameters, and in the name of a file."""
CHARSETS = (*UTF_8, "iso-8859-1")
"""The charsets of a parameter, of those that RFC 5987 wants to be read."""

_parser: Any = multipartparser  # its stubs leave the function out
_read = _parser.parse_boundary_stream


def install() -> None:
    """Let Django's parser of forms, which that of the API uses too, look at the headers of each part before it reads
    them. It has no place of its own where that could be done."""
    _parser.parse_boundary_stream = _parse_boundary_stream


def _parse_boundary_stream(stream: Any, max_header_size: int) -> Any:
    """Read the headers of a part. Raises MultiPartParserError, which is answered with 400."""
    begin = stream.read(max_header_size)
    stream.unget(begin)
    head, end, _content = begin.partition(b"\r\n\r\n")
    if end:
        check(head)
    kind, headers, content = _read(stream, max_header_size)
    if kind == multipartparser.FILE and "name" not in headers["content-disposition"][1]:
        raise MultiPartParserError("A part is a file for no field.")  # Django passes over it, and counts the others
    return kind, headers, content


def check(head: bytes) -> None:
    """Raise MultiPartParserError if these headers take long to read, or cannot be read."""
    if head.count(b"\r\n") > LINES_MOST or head.count(b";") > PARAMETERS_MOST:
        raise MultiPartParserError("The headers of a part are longer than the site reads.")
    if not all(_readable(line) for line in head.split(b"\r\n") if b"*" in line):
        raise MultiPartParserError("The headers of a part name a charset that the site does not read.")


def _readable(line: bytes) -> bool:
    """Whether it has no parameter that names another charset, and none in pieces that cannot be put together."""
    message = Message()
    try:
        message["Content-Type"] = line.decode()
        parameters: list[tuple[str, Any]] = message.get_params() or []
    except UnicodeDecodeError:
        return True  # Django passes over it
    except TypeError:
        return False
    named = (value[0] for _name, value in parameters if isinstance(value, tuple))
    return all(charset.lower() in CHARSETS for charset in named if charset)
