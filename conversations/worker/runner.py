"""Running one claimed prompt: read its ledger, run it to its end or until a person must decide, and release it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from django.conf import settings
from django.db import Error

from agents import registry
from agents.engine.closing import tokens_of
from agents.engine.errors import Cancelled, Draining, Fenced, Halt, ReplayMismatch, Unrecorded
from agents.engine.interfaces.journal import Record
from agents.engine.runtime.run import Run
from agents.engine.secrets import RunSecrets
from agents.plugins.files.usage import usage_of
from conversations.approvals.gatekeeper import SiteGatekeeper
from conversations.database.away import is_away
from conversations.database.busy import brief_waits, is_busy
from conversations.database.crashpoints import crashpoint
from conversations.database.retries import retry_while_held_up
from conversations.database.threads import Write
from conversations.files.workspaces import folder_of
from conversations.ledger.claims import STRIKES, Claim, release, take_up_again
from conversations.ledger.given_up import give_up
from conversations.ledger.group_commit import GroupCommit, PromptJournal, WorkerEntry
from conversations.ledger.place import LedgerPlace
from conversations.models import KillSwitch, Prompt, State
from conversations.prompts import killswitch, signals
from conversations.prompts.limits import limits
from conversations.usage import quotas
from conversations.usage.storage import keep_measure
from conversations.worker.drafts import Drafts
from conversations.worker.kept import Kept
from conversations.worker.loading import Loaded, load
from conversations.worker.services import PromptServices

logger = logging.getLogger(__name__)
T = TypeVar("T")

AWAY_SECONDS = 1.0
"""Time between two attempts to release a turn while the database is away: the outage is no fault of the turn's."""


def _keep_measure(conversation: int, held: int) -> None:
    with brief_waits():
        keep_measure(conversation, held)


class Runner:
    """Runs one claim. `write` runs a function in the thread that owns the worker's connection.

    `may_begin`: whether its lease has enough time left to start an effect. `hold` is called with a lease that was taken
    again. `of_apps`: the services of apps, by name. `kept`: what its process keeps for all of its turns. `commit`
    commits their records.
    """

    def __init__(
        self,
        claim: Claim,
        worker: str,
        write: Write,
        drafts: Drafts,
        may_begin: Callable[[], bool],
        *,
        hold: Callable[[Claim], object] = lambda claim: None,
        of_apps: Mapping[str, Any] = MappingProxyType({}),
        kept: Kept | None = None,
        commit: GroupCommit | None = None,
    ) -> None:
        self.claim, self.worker, self.write, self.drafts, self.may_begin = claim, worker, write, drafts, may_begin
        self._hold, self._of_apps, self._kept = hold, of_apps, kept or Kept()
        self._group = commit or GroupCommit(write)
        self._switch: KillSwitch | None = None
        self._run: Run | None = None  # None until its ledger is read
        self._services: PromptServices | None = None
        self._waited = 0.0  # seconds that a write was held up, not subtracted yet from the prompt's running time
        self._halt: Halt | None = None
        self._draining = False
        self._alone = False  # whether it is known to be no part of anything
        self._let_go = False  # whether its last record, a pause or the end, has released the prompt
        self._secrets = RunSecrets()

    async def __call__(self) -> None:
        """Run it. Never raises: failures are recorded in the ledger; or logged, and the prompt's lease lapses.

        If the database is away, the prompt is released as soon as it answers: no worker was lost. What the run was
        given in secret is hidden in all that it says, in the log as well.
        """
        with self._secrets.hidden():
            await self._run_claim()

    async def _run_claim(self) -> None:
        extra, outage = {"prompt": self.claim.prompt}, False
        try:
            if self.claim.strikes >= STRIKES:
                await self._patiently(give_up, self.claim)
            else:
                await self._turn(await self.write(self._load))
        except Fenced:
            logger.warning("another worker took over the prompt", extra=extra)
            return
        except Draining:
            logger.info("left to another worker", extra=extra)
        except (Unrecorded, Exception) as raised:
            error = raised.error if isinstance(raised, Unrecorded) else raised
            if not is_away(error):
                logger.exception("the prompt's run failed; its lease will lapse", extra=extra)
                return
            outage = not is_busy(error)  # somebody else's lock is certainly not the turn's doing
            logger.warning("the database was away; the turn goes on from its ledger", exc_info=True, extra=extra)
        finally:
            self.drafts.forget(self.claim)
        await self._release(extra, outage)

    def _load(self) -> Loaded:
        self._kept.see(self.claim.changes)
        return load(self.claim.prompt, self._kept)

    async def _release(self, extra: dict[str, int], outage: bool) -> None:
        crashpoint("before_release")
        await self._measure_workspace(extra)
        while not await self._released(extra, outage):  # noqa: ASYNC110 - nothing in this process tells when it is back
            await asyncio.sleep(AWAY_SECONDS)

    async def _released(self, extra: dict[str, int], outage: bool) -> bool:
        """Release the prompt. Returns False if that is to be tried again, because the database is away."""
        try:
            if not self._let_go:
                await self._patiently(partial(release, outage=outage), self.claim)
        except Error as error:
            if is_away(error) and not self._draining:
                return False
            logger.warning("the prompt could not be released; its lease will lapse", exc_info=True, extra=extra)
        else:
            await self.write(partial(signals.released.send_robust, None, prompt=self.claim.prompt, alone=self._alone))
        return True

    async def _measure_workspace(self, extra: dict[str, int]) -> None:
        """Keep what the workspace holds now, for the quota of its owner, if a tool had it."""
        if not (self._services and self._services.opened):
            return
        try:
            now = await asyncio.to_thread(usage_of, folder_of(self._services.conversation))
            await self.write(_keep_measure, self._services.conversation, now.bytes)
        except (Error, OSError):  # the last measure stays
            logger.warning("the workspace could not be measured", exc_info=True, extra=extra)

    async def _patiently(self, function: Callable[..., T], *args: object) -> T:
        """Write it, waiting as long as the disk is full or a row is locked. That time does not count as running time.

        If the lease ran out meanwhile, it is renewed first.
        """
        return await retry_while_held_up(self.write, self._after_wait, function, *args, waited=self._add_wait)

    def _add_wait(self, seconds: float) -> None:
        self._waited += seconds
        if self._services:
            self._services.started += seconds

    async def _commit(self, entry: WorkerEntry) -> None:
        """Commit a record as `_patiently` writes."""
        await retry_while_held_up(self._group, entry, waited=self._add_wait)

    def _after_wait(self, function: Callable[..., T], *args: object) -> T:
        self._renew_after_wait()
        return function(*args)

    def _renew_after_wait(self) -> None:
        if self._waited:
            at = time.monotonic()
            if take_up_again(self.claim, self._waited, settings.AGENTSITE_LEASE_SECONDS):
                self._hold(replace(self.claim, at=at))
            self._waited = 0.0

    def drain(self) -> None:
        """Start no new effect; what is running may finish."""
        self._draining = True
        if self._run:
            self._run.draining = True

    def stop(self, halt: Halt) -> None:
        """Start nothing more, and end what is running, for this reason."""
        self._halt = halt
        if self._run:
            self._run.stop(halt)

    def kill(self, switch: KillSwitch) -> None:
        """Stop at once because the kill switch is on, which is recorded before anything else.

        A turn that had not started is released, and starts when the switch is off.
        """
        self._switch = switch
        self.stop(Cancelled())

    def _before_record(self) -> None:
        self._renew_after_wait()
        self._record_kill()

    def _record_kill(self) -> None:
        """Record that the kill switch stopped the turn. A turn that had not started stays queued: raises Draining."""
        if not self._switch:
            return
        if Prompt.objects.filter(pk=self.claim.prompt, state=State.QUEUED).exists():
            raise Draining
        killswitch.end(self.claim.prompt, self._switch)

    def _after_record(self, record: Record, place: LedgerPlace) -> None:
        self._kept.see(place.changes)
        self._let_go = any(not step.path and step.type in ("pause", "action_result") for step in record.steps)
        if self._services and (used := sum(map(tokens_of, record.steps))):
            self._kept.add(quotas.tokens_today, self._services.user, used)

    async def _turn(self, loaded: Loaded) -> None:
        self._alone = not loaded.prompt.together
        run = self._begin(loaded)
        root = loaded.steps[0].payload
        try:
            await run.run_turn(root["policy"], root["payload"], start=True)
        except ReplayMismatch as error:
            await run.fail("internal_error", f"This turn was started by another version of the site: {error}.")
        except Error:
            raise  # nothing can be recorded now; the lease lapses and the turn goes on later
        except Exception:
            logger.exception("a policy raised an unexpected exception", extra={"prompt": self.claim.prompt})
            await run.fail("internal_error", "The site itself failed. The details are in its log.")

    def _begin(self, loaded: Loaded) -> Run:
        self._secrets.add(loaded.secrets)
        drafts = self.drafts.of(self.claim, self._secrets)
        services = self._services = PromptServices(
            loaded.prompt,
            loaded.space,
            self.write,
            drafts,
            self.may_begin,
            of_apps=self._of_apps,
            secrets=loaded.secrets,
            patiently=self._patiently,
            kept=self._kept,
            first=loaded.first,
            zone=loaded.zone,
        )
        run = self._run = Run(
            registry.policies(),
            PromptJournal(
                loaded.place,
                self.claim.fence,
                self._commit,
                drafts.close,
                before=self._before_record,
                after=self._after_record,
            ),
            services,
            steps=loaded.steps,
            last_id=loaded.place.seq,
            states=loaded.states,
            fence=self.claim.fence,
            limits=limits(),
            gatekeeper=SiteGatekeeper(self.write, self.claim.prompt, services.user, services.settled),
            worker=self.worker,
        )
        run.draining = self._draining
        if self._halt:
            run.stop(self._halt)
        return run
