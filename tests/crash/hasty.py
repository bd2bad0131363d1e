"""The site's settings, but that q2 cuts a task off after seconds, and gives it to another process a little later."""

from agentsite.settings import *  # noqa: F403
from agentsite.settings import Q_CLUSTER

Q_CLUSTER = {**Q_CLUSTER, "timeout": 4, "retry": 8}
