"""Settings with which django-q2 kills a task after seconds, and soon gives it to another process."""

from agentsite.settings import *  # noqa: F403
from agentsite.settings import Q_CLUSTER

Q_CLUSTER = {**Q_CLUSTER, "timeout": 4, "retry": 8}
