"""Skills: knowledge that is described to an agent always, and told in full only while it works with it."""
