"""Reading the files of a conversation's own folder, and nothing else on the machine."""
