"""Places: where a text stands, which says where its pictures are and keeps its footnotes apart from those of others."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

PLACE = "place"
"""Where a text's place stands in the environment of its tokens."""


@dataclass(frozen=True)
class Place:
    """The place of a text. `name` is unique on the page, for the ids of footnotes.

    `diagrams` and `images` are the beginnings of the addresses of its diagrams ("/prompts/5/diagrams/") and of the
    images that it names ("/c/3/images/").
    """

    name: str
    diagrams: str
    images: str

    @classmethod
    def of_prompt(cls, prompt: int, conversation: int) -> Place:
        """Return the place of what a turn says."""
        return cls(f"{prompt}", f"{reverse('inspector', args=[prompt])}diagrams/", _images(conversation))

    @classmethod
    def of_file(cls, file: int, conversation: int) -> Place:
        """Return the place of what stands in a file."""
        return cls(f"f{file}", f"{reverse('download', args=[file])}diagrams/", _images(conversation))


def _images(conversation: int) -> str:
    return f"{reverse('conversation', args=[conversation])}images/"
