"""The record: what the database keeps of conversations."""

from conversations.models.conversation import Conversation
from conversations.models.erasure import Erasure
from conversations.models.file import File
from conversations.models.output import Approval, Gate, Output
from conversations.models.prompt import Origin, Prompt, State
from conversations.models.snapshot import Snapshot
from conversations.models.step import Step
from conversations.models.worker import Drain, Worker

__all__ = [
    "Approval",
    "Conversation",
    "Drain",
    "Erasure",
    "File",
    "Gate",
    "Origin",
    "Output",
    "Prompt",
    "Snapshot",
    "State",
    "Step",
    "Worker",
]
