"""Files: what people upload, what tools make, and the workspace of a conversation."""
