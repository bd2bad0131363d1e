"""`python -m tests.crash.drainer FILE`: one drain, from when FILE exists until nothing is left to do."""

import os
import sys
import time
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from tests.idle import drain_until_idle  # noqa: E402 - Django comes first

begin = Path(sys.argv[1])
if not begin.exists():
    Path(f"{begin}.{os.getpid()}").touch()  # marks this process as ready
while not begin.exists():
    time.sleep(0.001)
drain_until_idle()
