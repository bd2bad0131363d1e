"""`python -m tests.crash.drainer FILE`: one drain, begun at the moment when FILE is there."""

import os
import sys
import time
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from conversations.worker.drain import drain  # noqa: E402 - Django comes first

begin = Path(sys.argv[1])
if not begin.exists():
    Path(f"{begin}.{os.getpid()}").touch()  # says that this one is ready
while not begin.exists():
    time.sleep(0.001)
drain()
