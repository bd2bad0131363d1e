"""`python -m tests.crash.doer WHAT ID`: an action of a person, in a process that can be killed during it."""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402 - Django comes first

from conversations.approvals.decisions import decide  # noqa: E402
from conversations.models import Output  # noqa: E402
from conversations.prompts.start import cancel_prompt  # noqa: E402

what, pk = sys.argv[1], int(sys.argv[2])
admin = User.objects.get(username="admin")
if what == "stop":
    cancel_prompt(pk, admin)
else:
    decide(pk, admin, what, digest=Output.objects.get(pk=pk).digest, via="api")
