"""Configuration that people change on the site, and what agents keep of people."""

from agents.models.blueprint import Blueprint
from agents.models.memory import Memory, MemoryStanding
from agents.models.searched import Searched, SearchedWord, SearchIndex, WordCount
from agents.models.skill import Skill
from agents.models.suggestion import Suggestion
from agents.models.system_prompt import AgentPrompt, ChangedMeanwhile, SystemPrompt, SystemPromptVersion

__all__ = [
    "AgentPrompt",
    "Blueprint",
    "ChangedMeanwhile",
    "Memory",
    "MemoryStanding",
    "SearchIndex",
    "Searched",
    "SearchedWord",
    "Skill",
    "Suggestion",
    "SystemPrompt",
    "SystemPromptVersion",
    "WordCount",
]
