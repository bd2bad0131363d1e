"""The agent: one turn, its rounds, the calls of each answer, and what the model is sent."""
