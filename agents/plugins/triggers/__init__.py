"""Triggers: the schedules by which turns start by themselves, and the tools by which an agent makes them."""
