import os

from django.core.management.base import BaseCommand
from django_q.brokers import get_broker
from django_q.cluster import Cluster

from agents import discovery
from agents.plugins.shell.tree import die_with_parent
from agents.plugins.tools.fitting import learn
from conversations.database.lasting import keep_connections
from conversations.worker import hosts


class Command(BaseCommand):
    help = "Run the background cluster. None of its processes outlives the one that started it. `worker` runs this."

    def handle(self, *_args: object, **_options: object) -> None:
        os.register_at_fork(after_in_child=die_with_parent)  # q2 would leave its children running, unwatched
        keep_connections()
        learn([*discovery.installed().offered, *discovery.installed().tools])  # here it holds up no turn
        Cluster(get_broker(hosts.this_host())).start()
