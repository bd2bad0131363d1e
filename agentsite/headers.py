"""The headers of a request that take long to read, or cannot be read: its Content-Type, and its Accept.

Django reads the Content-Type where all connections wait for it.
"""

from __future__ import annotations

import re

from django.utils.http import parse_header_parameters

from agentsite.refusals import CHARSET, LONG_HEADER, Refusal

MOST = 1000
"""Characters. Reading takes time in proportion to the square of the length: for 15,000 it was a quarter of a second."""
UTF_8 = ("utf-8", "utf8", "us-ascii", "ascii")
"""The charsets of a body that is taken. Decoders of others may be slow: Python's punycode takes minutes for 1 MB."""


def refusal(content_type: str, accept: str = "") -> Refusal | None:
    """Return why a request with these headers is refused; None if it is not. "" stands for one without."""
    if max(len(content_type), len(accept)) > MOST:
        return LONG_HEADER
    if any(_names_decoder(kind) for kind in accept.split(",")):
        return CHARSET
    return None if _charset(content_type) in UTF_8 else CHARSET


def _names_decoder(header: str) -> bool:
    """Whether a parameter is of RFC 2231, such as `charset*=punycode''a`: it names a decoder, which reading would call.

    Some of them cannot be read at all.
    """
    return re.search(r";[^=;]*\*", header) is not None


def _charset(content_type: str) -> str | None:
    """Return the charset that it names, as Django reads it, which would take any that Python knows; None if none."""
    if _names_decoder(content_type):
        return None
    try:
        return parse_header_parameters(content_type)[1].get("charset", "utf-8").strip().lower()
    except ValueError:
        return None
