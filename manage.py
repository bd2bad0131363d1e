#!/usr/bin/env python
"""Agentsite's command line: `manage.py serve` starts the site, `manage.py help` lists the rest."""

import os
import sys

from agentsite.errors import CannotStart


def main() -> int:
    """Run the command named in `sys.argv` and return the exit code.

    If the site cannot start with these settings, one sentence on stderr says why, and the exit code is 2.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except CannotStart as error:
        sys.stderr.write(f"agentsite: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
