"""Starting batches: once, when a person confirms, and line by line after that, from the workers.

A line starts in one transaction with what its batch knows of it, under the lock of the batch's row. So whoever is
killed, and however many workers look at the same batch, each line starts once. Its run has a key of its own as well,
`batch:<id>:<line>`, which the database keeps unique.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import Error, IntegrityError, OperationalError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from agents.engine.ledger import JSON
from agents.engine.references import secret_keys
from agents.engine.secrets import hide_in
from conversations.database.busy import brief_waits, is_locked
from conversations.database.crashpoints import crashpoint
from conversations.database.disk import DiskFull
from conversations.models import Origin, Prompt, State
from conversations.prompts import killswitch
from conversations.prompts.idempotency import request_digest
from conversations.prompts.killswitch import SiteStopped
from conversations.prompts.start import Deactivated, cancel_prompt
from conversations.prompts.startable import InvalidInput, NotAllowed
from conversations.usage import quotas
from conversations.usage.quotas import OverQuota
from workflows import discovery
from workflows.definition import Workflow
from workflows.files import upload_fields
from workflows.models import Batch, BatchLine
from workflows.running import start_run

logger = logging.getLogger(__name__)

SIDE_BY_SIDE = 5
"""Lines of a batch that run, or wait for a person, at the same time. One that sleeps takes nobody's place."""
HOLDING = (State.QUEUED, State.RUNNING, State.WAITING)
"""The states of a run that holds one of these places."""
STOPPED = "The batch was stopped before this line's turn."
GONE = "This workflow is no longer installed."
FAILED = "The site itself failed. The details are in its log."
RESTORED = "The site was restored from a backup of {time}. Whether this line ran after that is unknown here."


class BatchKeyReused(Exception):
    """This key has already started another batch. Send a new key with each new table."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(self.__doc__)
        self.batch = batch


class BatchRuns(Exception):
    """A line of this batch runs, waits, or is to come. Stop the batch first."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def why_no_batch(workflow: Workflow) -> str | None:
    """Return why this workflow cannot be run for each line of a table, in sentences for people; None if it can."""
    if not workflow.input.model_fields:
        return "It takes no input, so every line would be the same."
    if secret_keys(workflow.input):
        return (
            "It asks for a secret. A secret is kept only for a run that has begun, and the lines of a table wait for"
            " their turn. Run it from its form, once for each line."
        )
    if upload_fields(workflow.input):
        return "It takes an uploaded file, which only one run can have. Run it from its form, once for each line."
    if workflow.workspace == "required":
        return "It works on the files of one of your chats. Run it from its form, once for each line."
    if not workflow.schedulable:
        return "It may only start while somebody is there, and the lines of a table start one after another later on."
    return None


def start_batch(
    workflow: Workflow,
    by: User,
    inputs: Sequence[dict[str, JSON]],
    key: str = "",
    *,
    origin: Origin = Origin.WORKFLOW,
) -> Batch:
    """Store a batch of these inputs, which were all checked, and start its first lines.

    `origin`: how it was started, for the history of its runs; by default from a page.
    The same `key` again, from the same person, returns the first batch. Raises BatchKeyReused if that was another one,
    NotAllowed and Deactivated.
    """
    digest = request_digest(["batch", workflow.name, list(inputs)]) if key else ""
    if earlier := _started_before(by, key, digest):
        return earlier
    if why := workflow.why_not(by):
        raise NotAllowed(workflow.policy_name, why)
    try:
        with transaction.atomic():
            if not User.objects.select_for_update(no_key=True).get(pk=by.pk).is_active:
                raise Deactivated  # whoever erases this person would miss it
            batch = Batch.objects.create(
                user=by, workflow=workflow.name, origin=origin, request_key=key, request_digest=digest
            )
            BatchLine.objects.bulk_create(
                BatchLine(batch=batch, number=number, input=json.dumps(hide_in(input), ensure_ascii=False))
                for number, input in enumerate(inputs, 1)
            )
    except IntegrityError:
        if earlier := _started_before(by, key, digest):
            return earlier
        raise
    crashpoint("after_batch")
    try:
        _advance(batch.pk)
    except Error:  # whoever was told that nothing is stored would send it again
        logger.exception("the first lines of batch %s could not be started; they start later", batch.pk)
    return batch


def _started_before(by: User, key: str, digest: str) -> Batch | None:
    found = Batch.objects.filter(user=by, request_key=key).first() if key else None
    if found and found.request_digest != digest:
        raise BatchKeyReused(found)
    return found


def stop_batch(batch: Batch, *, running: bool = False) -> None:
    """Start no more of its lines. With `running`, stop the runs that have not ended too.

    Repeating it changes nothing but what runs by then.
    """
    with transaction.atomic():
        locked = Batch.objects.select_for_update().get(pk=batch.pk)
        if not locked.stopped_at:
            locked.stopped_at = timezone.now()
            locked.save(update_fields=["stopped_at"])
        _end_rest(locked, STOPPED)
    if running:
        open_runs = Prompt.objects.filter(pk__in=batch.lines.values("prompt"), ended_at=None)
        for run in open_runs.order_by("pk").values_list("pk", flat=True):
            cancel_prompt(run, batch.user)


def delete_batch(batch: Batch) -> None:
    """Delete a batch that has ended, with the inputs of lines that never started. Its runs stay.

    Raises BatchRuns, and Batch.DoesNotExist if it was deleted meanwhile.
    """
    with transaction.atomic():
        locked = Batch.objects.select_for_update().get(pk=batch.pk)
        open_lines = waiting_lines() | BatchLine.objects.filter(prompt__isnull=False, prompt__ended_at=None)
        if open_lines.filter(batch=locked).exists():
            raise BatchRuns
        locked.delete()


def why_waits(batch: Batch) -> str | None:
    """Return why none of its lines can start now, although there are places; None if nothing holds them up."""
    if switch := killswitch.active_switch():
        return f"All work was stopped by {killswitch.actor_name(switch.on_by)} ({switch.reason.rstrip('.')})."
    try:
        quotas.check(batch.user_id, batch.together)
    except OverQuota as error:
        return str(error)
    return None


def waiting_lines() -> QuerySet[BatchLine]:
    """Return the lines whose turn is still to come."""
    return BatchLine.objects.filter(started_at=None, why_not="")


def advance_of(prompt: int, *, alone: bool, **_: object) -> None:
    """Start the next lines of the batch that this turn belongs to, if it belongs to one. `alone`: it does not."""
    if alone:
        return
    if line := BatchLine.objects.filter(prompt=prompt).values_list("batch", flat=True).first():
        _advance(line)


def advance_all(**_: object) -> None:
    """Start the next lines of every batch."""
    waits = Batch.objects.filter(Exists(waiting_lines().filter(batch=OuterRef("pk"))))
    for batch in waits.order_by("pk").values_list("pk", flat=True):
        _advance(batch)


def end_after_restore(time: str, **_: object) -> None:
    """Start none of the lines that wait: they may have run since the backup."""
    waiting_lines().update(why_not=RESTORED.format(time=time))


def _advance(batch: int) -> None:
    """Start the next lines of a batch, as far as there are places. What fails is logged: the next sweep goes on."""
    try:
        while _start_next(batch):
            pass
    except Batch.DoesNotExist:
        pass  # its person was erased meanwhile
    except DiskFull:
        logger.warning("the disk is full; the lines of batch %s start later", batch)
    except OperationalError as error:
        if not is_locked(error):
            raise
        logger.warning("batch %s is locked by another process; it goes on later", batch)


def _start_next(pk: int) -> bool:
    """Start the next line of a batch, or note why it never starts. Returns False if nothing can start now."""
    with brief_waits():
        batch = Batch.objects.select_for_update().get(pk=pk)
        line = waiting_lines().filter(batch=batch).order_by("number").first()
        if line is None or batch.lines.filter(prompt__state__in=HOLDING).count() >= SIDE_BY_SIDE:
            return False
        workflow = discovery.installed().get(batch.workflow)
        why = workflow.why_not(batch.user) if workflow else GONE
        if workflow is None or why:
            _end_rest(batch, why or GONE)
            return False
        try:
            _start(batch, workflow, line)
        except (OverQuota, SiteStopped):
            return False
        except (NotAllowed, Deactivated) as error:  # this very moment
            _end_rest(batch, str(error))
        except InvalidInput as error:
            _end(line, str(error))
        except (Error, DiskFull):
            raise
        except Exception:
            logger.exception("line %s of batch %s could not be started", line.number, batch.pk)
            _end(line, FAILED)
    return True


def _start(batch: Batch, workflow: Workflow, line: BatchLine) -> None:
    key, input = f"{batch.together}:{line.number}", json.loads(line.input)
    origin = Origin(batch.origin)
    run = start_run(workflow, batch.user, input, key=key, origin=origin, together=batch.together)
    line.prompt, line.started_at, line.input = run, timezone.now(), ""
    line.save(update_fields=["prompt", "started_at", "input"])
    crashpoint("before_line")


def _end(line: BatchLine, why: str) -> None:
    line.why_not = why
    line.save(update_fields=["why_not"])


def _end_rest(batch: Batch, why: str) -> None:
    """Note why the lines whose turn is still to come never start."""
    waiting_lines().filter(batch=batch).update(why_not=why)
