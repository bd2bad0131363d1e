"""The check of a picture: a library that one person maintains has drawn it from what a model wrote.

Only elements and attributes on the lists below are let through, and nothing that refers to another document. A picture
is shown as an image, in which browsers neither run scripts nor load anything: this check is a second wall.
"""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree as ET  # no entities can be declared: see _parsed

SVG = "http://www.w3.org/2000/svg"

ELEMENTS = {
    "a", "circle", "clipPath", "defs", "desc", "ellipse", "feDropShadow", "filter", "g", "image", "line",
    "linearGradient", "marker", "path", "pattern", "polygon", "polyline", "radialGradient", "rect", "stop", "style",
    "svg", "symbol", "text", "title", "tspan", "use",
}  # fmt: skip
SIZE_MOST = 32_000
"""Pixels of a side. Browsers draw no larger image."""

_FOREIGN = re.compile(r"url\(\s*(?!['\"]?#)|@import|@font-face|image-set|expression|javascript:|\\", re.IGNORECASE)
"""What could make a style refer to another document. A backslash could spell any of it."""
_WORDS = ("class", "id", "title", "name", "role")
"""Attributes that are words of the author, or names: nobody reads them as a style. So are those of `data-`, `aria-`."""


class Unsafe(Exception):
    """The picture holds something that a picture may not hold. The message names it."""


def checked(drawn: str, css: str) -> str:
    """Return the picture with this CSS at its end, and its width and height in pixels.

    Without them, or with `width="100%"`, an image would be 0 pixels wide. Raises Unsafe.
    """
    root = _parsed(drawn)
    if root.tag != f"{{{SVG}}}svg":
        raise Unsafe("it is no SVG")
    for element in root.iter():
        _check(element)
    _measure(root)
    ET.SubElement(root, f"{{{SVG}}}style").text = css
    ET.register_namespace("", SVG)
    return ET.tostring(root, encoding="unicode")


def _parsed(drawn: str) -> ET.Element:
    if "<!" in drawn or "<?" in drawn:
        raise Unsafe("it declares a document type")
    try:
        return ET.fromstring(drawn)  # noqa: S314 - without a document type there are no entities
    except ET.ParseError as error:
        raise Unsafe("it is not well-formed") from error


def _check(element: ET.Element) -> None:
    space, _, name = element.tag.rpartition("}")
    if space != f"{{{SVG}" or name not in ELEMENTS:
        raise Unsafe(f"it has an element {name}")
    if name == "style" and _FOREIGN.search(element.text or ""):
        raise Unsafe("its style refers to something outside")
    for attribute, value in list(element.items()):
        local = attribute.rpartition("}")[2].lower()
        if local == "href" and not value.startswith("#"):
            del element.attrib[attribute]  # a link or an image of the author: the picture is whole without
            continue
        if local.startswith("on"):
            raise Unsafe(f"it has an attribute {local}")
        if not local.startswith(("data-", "aria-")) and local not in _WORDS and _FOREIGN.search(value):
            raise Unsafe(f"its {local} refers to something outside")
        if local == "style":
            element.set(attribute, value.replace("!important", ""))  # so that our own style is the last word


def _measure(root: ET.Element) -> None:
    try:
        _, _, width, height = (float(each) for each in root.get("viewBox", "").split())
    except ValueError as error:
        raise Unsafe("it has no size") from error
    for name, size in (("width", width), ("height", height)):
        if not (math.isfinite(size) and size > 0):
            raise Unsafe("it has no size")
        root.set(name, str(min(math.ceil(size), SIZE_MOST)))
    root.attrib.pop("style", None)  # a largest width, which would hold in a window of its own only
