"""The Content-Type of a request, which Django reads where all connections wait for it."""

from __future__ import annotations

from django.utils.http import parse_header_parameters

from agentsite.refusals import CHARSET, LONG_HEADER, Refusal

CONTENT_TYPE_MOST = 1000
"""Characters. Reading takes time in proportion to the square of the length: for 15,000 it was a quarter of a second."""
UTF_8 = ("utf-8", "utf8", "us-ascii", "ascii")
"""The charsets of a body that is taken. Decoders of others may be slow: Python's punycode takes minutes for 1 MB."""


def refusal(content_type: str) -> Refusal | None:
    """Return why a request with this Content-Type is refused; None if it is not. "" stands for one without."""
    if len(content_type) > CONTENT_TYPE_MOST:
        return LONG_HEADER
    return None if _charset(content_type) in UTF_8 else CHARSET


def _charset(content_type: str) -> str | None:
    """Return the charset that it names, as Django reads it, which would take any that Python knows.

    None if a parameter is of RFC 2231, such as `charset*=punycode''a`: it names a decoder, which reading would call.
    """
    if any("*" in parameter.partition("=")[0] for parameter in content_type.split(";")[1:]):
        return None
    try:
        return parse_header_parameters(content_type)[1].get("charset", "utf-8").strip().lower()
    except ValueError:
        return None
