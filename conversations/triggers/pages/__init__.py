"""The pages of triggers: the list with its form, and the history of one."""
