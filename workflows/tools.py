"""The tools of the workflows that ship, where those of an app are looked for. Only workflows call them, not models."""

from workflows.shipped.cleanup.tools import delete_items, look_at_workspace
from workflows.shipped.component.tools import read_component
from workflows.shipped.documents import find_documents, read_document, search_documents
from workflows.shipped.project.tools import check_folder, write_project
from workflows.shipped.skills.tools import add_skills, read_skills

__all__ = [
    "add_skills",
    "check_folder",
    "delete_items",
    "find_documents",
    "look_at_workspace",
    "read_component",
    "read_document",
    "read_skills",
    "search_documents",
    "write_project",
]
