"""Commits a second that a PostgreSQL server takes from many writers, each a thread that records one step at a time."""

from __future__ import annotations

import argparse
import multiprocessing
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from threading import Thread
from typing import Any

from bench import support

PROCESSES = 8
"""How many processes the writers are spread over: on a busy site, about as many as there are workers."""


def main() -> None:
    """Print a line for each number of writers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", default="8,32,64", help="numbers of writers, comma-separated")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each number is measured")
    parser.add_argument("--listen", action="store_true", help="have a connection listen, as a web server does")
    options = parser.parse_args()
    with support.site("postgres", "http://127.0.0.1:1/v1"):
        rows = [measure(int(number), options) for number in options.writers.split(",")]
    print(support.table(["writers", "commits/s", "notifications/s"], rows))


def measure(writers: int, options: argparse.Namespace) -> list[Any]:
    """Return the number of writers, their commits a second, and the notifications a second that were received."""
    from django.db import connection, connections

    from conversations.prompts.start import start_conversation, start_prompt

    people = [support.person(f"{writers}-{number}") for number in range(writers)]
    prompts = [start_prompt(start_conversation(person), person, "go").pk for person in people]
    parameters = connection.get_connection_params()
    connections.close_all()
    fork = multiprocessing.get_context("fork")
    counts: Queue[int] = fork.Queue()
    started = fork.Barrier(writers + 1)
    shares = [prompts[first::PROCESSES] for first in range(PROCESSES)]
    processes = [fork.Process(target=_write_all, args=(share, options.seconds, started, counts)) for share in shares]
    for process in processes:
        process.start()
    started.wait()
    heard = _listen(parameters, options.seconds) if options.listen else 0
    commits = sum(counts.get() for _ in prompts)
    for process in processes:
        process.join()
    return [writers, round(commits / options.seconds), round(heard / options.seconds)]


def _write_all(prompts: list[int], seconds: float, started: Barrier, counts: Queue[int]) -> None:
    """Write in a thread for each prompt."""
    writers = [Thread(target=_write, args=(prompt, seconds, started, counts)) for prompt in prompts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def _write(prompt: int, seconds: float, started: Barrier, counts: Queue[int]) -> None:
    """Record steps for this long, as a worker does, and report how many."""
    from django.db import transaction

    from agents.engine.interfaces.journal import Record
    from agents.engine.ledger import Step
    from conversations.ledger.journal import append
    from conversations.ledger.place import LedgerPlace
    from conversations.models import Prompt

    conversation = Prompt.objects.select_related("conversation").get(pk=prompt).conversation
    place = LedgerPlace(conversation.pk, prompt, conversation.seq, conversation.head)
    count = 0
    started.wait()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        step = Step("system", "note", {"text": "x" * 200}, "", place.seq + 1, "2026-01-01T00:00:00+00:00")
        with transaction.atomic():
            place = append(place, Record((step,)))
        count += 1
    counts.put(count)


def _listen(parameters: dict[str, Any], seconds: float) -> int:
    """Return how many notifications arrive in this time."""
    import psycopg

    with psycopg.connect(**parameters, autocommit=True) as listening:
        listening.execute("LISTEN agentsite")
        return sum(1 for _ in listening.notifies(timeout=seconds))


if __name__ == "__main__":
    main()
