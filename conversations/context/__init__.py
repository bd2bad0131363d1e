"""`/context`: the agent, with its tools and approvals, for any client that speaks OpenAI's chat completions."""
