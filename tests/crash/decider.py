"""`python -m tests.crash.decider OUTPUT`: approve a gate, in a process that can be killed while it does."""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402 - Django comes first

from conversations.approvals.decisions import decide  # noqa: E402
from conversations.models import Output  # noqa: E402

gate = Output.objects.get(pk=sys.argv[1])
decide(gate.pk, User.objects.get(username="admin"), "approve", digest=gate.digest, via="api")
