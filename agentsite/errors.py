"""The error that stops the site from starting."""


class CannotStart(Exception):
    """The site cannot start with its current setup.

    The message is one sentence for the person at the terminal: what is wrong and what to do. Commands print it
    without a traceback and exit with code 2.
    """
