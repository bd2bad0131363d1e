"""Which tools an agent is offered where there is no room for all, and finding those that are left out."""
