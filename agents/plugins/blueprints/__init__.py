"""Blueprints: recipes of the site, of which an agent is told those that fit what was said."""
