"""The timeline: a turn as blocks with ids and versions."""
