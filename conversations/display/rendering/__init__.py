"""Rendering: Markdown, code, formulas and diagrams as safe HTML."""
