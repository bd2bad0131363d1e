"""An app with a workflow that takes files, for a browser."""
