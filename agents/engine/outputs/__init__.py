"""Outputs: what people see, folded from the steps, and the events that tell of it."""
