"""What stops a start."""


class CannotStart(Exception):
    """The site cannot start as it is set up.

    Its message is one sentence for the person at the terminal: what is wrong and what to do. Commands print it
    without a traceback and end with exit code 2.
    """
