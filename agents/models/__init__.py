"""Configuration that people change on the site."""

from agents.models.memory import Memory, MemoryOff
from agents.models.skill import Skill
from agents.models.suggestion import Suggestion
from agents.models.system_prompt import AgentPrompt, ChangedMeanwhile, SystemPrompt, SystemPromptVersion

__all__ = [
    "AgentPrompt",
    "ChangedMeanwhile",
    "Memory",
    "MemoryOff",
    "Skill",
    "Suggestion",
    "SystemPrompt",
    "SystemPromptVersion",
]
