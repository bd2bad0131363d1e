"""The tools of the workflows that ship, where those of an app are looked for. Only workflows call them, not models."""

from workflows.shipped.component.tools import read_component
from workflows.shipped.project.tools import check_folder, write_project

__all__ = ["check_folder", "read_component", "write_project"]
