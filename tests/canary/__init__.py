"""A site's own app that tells all it knows where it fails: in a tool, and on a page."""
