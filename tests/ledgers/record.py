"""`python -m tests.ledgers.record [NAME...]` records the turns that are not recorded yet, in a database of its own.

    <name>.jsonl    what `manage.py export_ledger` writes of the conversation
    <name>.json     the outputs of each of its prompts, in reading order

A file that is there is never written again: it says what a version of the site recorded.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import tests.environment  # noqa: F401 - before Django's settings are read

FOLDER = Path(__file__).parent


def main(names: list[str]) -> int:
    """Record; how many files there are now is printed."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentsite.settings"
    import django

    django.setup()
    from django.test.runner import DiscoverRunner

    runner = DiscoverRunner(verbosity=0, interactive=False)
    runner.setup_test_environment()
    databases = runner.setup_databases()
    try:
        from tests.ledgers.turns import TURNS

        for turn in TURNS:
            if not names or turn.__name__ in names:
                record(turn.__name__, turn)
    finally:
        runner.teardown_databases(databases)
    print(f"{len(list(FOLDER.glob('*.jsonl')))} ledgers")  # noqa: T201 - a command
    return 0


def record(name: str, turn: object) -> None:
    """One turn, unless it is recorded."""
    import pytest
    from django.db import transaction

    from agents.engine.outputs.timeline import Outputs
    from conversations.ledger.reading import read_steps
    from conversations.verification.ledger_file import exported_ledger
    from conversations.verification.stored import verify
    from tests.conversations.recorded import Site
    from tests.conversations.support import person
    from tests.ledgers.turns import conversation_of

    file, expected = FOLDER / f"{name}.jsonl", FOLDER / f"{name}.json"
    if file.exists() or expected.exists():
        print(f"{name}: is recorded")  # noqa: T201 - a command
        return
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        conversation = conversation_of(turn, Site(patch), person("ann"))  # type: ignore[arg-type]
        problems = verify(conversation.pk).problems
        if problems:
            raise SystemExit(f"{name}: {problems}")
        file.write_text("".join(exported_ledger(conversation.pk)), encoding="ascii")
        prompts = conversation.prompts.order_by("pk").values_list("pk", flat=True)
        folded = {
            pk: [output.model_dump(mode="json") for output in Outputs(read_steps(conversation.pk, pk)).in_order()]
            for pk in prompts
        }
        expected.write_text(json.dumps(folded, indent=1, sort_keys=True) + "\n", encoding="ascii")
        transaction.set_rollback(True)
    print(f"{name}: recorded")  # noqa: T201 - a command


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
