"""Configuration that people change on the site."""

from agents.models.skill import Skill
from agents.models.suggestion import Suggestion
from agents.models.system_prompt import AgentPrompt, ChangedMeanwhile, SystemPrompt, SystemPromptVersion

__all__ = ["AgentPrompt", "ChangedMeanwhile", "Skill", "Suggestion", "SystemPrompt", "SystemPromptVersion"]
