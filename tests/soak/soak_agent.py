"""A caller that also reconciles, hangs up, releases twice, and holds calls to their deadlines.

Separate from the plain agent, whose few calls crash tests count on.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from grpc import StatusCode, aio
from tests.integration.agents import Agent, Known

from numalign.v1 import admission_pb2 as ad

PATIENCE_SECONDS = 10.0
"""The deadline of a call that is not to be given up. No fault lasts so long."""

MOST_JOURNAL = 400

SLACK_SECONDS = 1.0
"""How much later than its deadline a call may come back on a busy machine."""


STATE = "state file "
"""What the error says that is answered where the state cannot be written."""


@dataclass
class SoakAgent(Agent):
    """An agent with counts.

    `admitted` are Admit calls for new pods that were answered with ADMITTED, `calls` all calls
    with an answer. `stuck` are calls that a patient caller got no answer to before its deadline,
    or that outlived their deadline; `unwritten` are calls that failed because the state could
    not be written. `journal` has what was done lately, for whoever has to find out why.
    """

    most_pods: int = 4
    admitted: int = 0
    stuck: int = 0
    given_up: int = 0
    released_twice: int = 0
    reconciled: int = 0
    unwritten: int = 0
    journal: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_JOURNAL))
    _seen: int = 0
    _limit: float = PATIENCE_SECONDS

    async def step(self) -> None:
        """Make one call, and look at the clock."""
        before = {uid for uid, known in self.pods.items() if known.answer is not None}
        started = time.monotonic()
        self._limit = PATIENCE_SECONDS
        try:
            await self._some_call()
        except aio.AioRpcError as error:
            if error.code() == StatusCode.DEADLINE_EXCEEDED and self._limit == PATIENCE_SECONDS:
                self.stuck += 1
                self.faults.append(f"{self.name}: no answer within {PATIENCE_SECONDS:g} s")
            if error.code() == StatusCode.UNAVAILABLE and STATE in (error.details() or ""):
                # No decision was made: the state could not be written.
                self.unwritten += 1
                return
            raise
        finally:
            if time.monotonic() - started > self._limit + SLACK_SECONDS:
                self.stuck += 1
                self.faults.append(f"{self.name}: a call outlived its deadline")
        new = [known.answer for uid, known in self.pods.items() if uid not in before]
        answers = [answer for answer in new if answer is not None]
        self.admitted += len(answers)
        self._seen = max(self._seen, *(answer.revision for answer in answers), 0)

    def check(self, listing: ad.ListAdmissionsResponse) -> list[str]:
        """As any agent; all that is listed has been seen then."""
        self._seen = listing.revision
        faults = super().check(listing)
        pods = {word for fault in faults for word in _words(fault) if "-" in word}
        return faults + [
            f"{self.name}: {line}" for line in self.journal if pods.intersection(_words(line))
        ]

    async def _some_call(self) -> None:
        action = self.choose.random()
        if action < 0.04:
            await self._hang_up()
        elif action < 0.07 and self.pods:
            await self._reconcile()
        else:
            await super().step()

    async def _hang_up(self) -> None:
        """Begin something and cancel it somewhere in the middle."""
        call = asyncio.ensure_future(super().step())
        await asyncio.sleep(self.choose.uniform(0.0, 0.01))
        call.cancel()
        try:
            await call
        except asyncio.CancelledError:
            self.given_up += 1

    async def _reconcile(self) -> None:
        """Name all pods but one, which is to be released."""
        sure = [uid for uid, known in self.pods.items() if known.sure and known.answer is not None]
        ended = self.choose.choice(sure) if sure else None
        request = ad.ReconcileRequest(
            owner=self.name,
            active_pod_uids=[uid for uid in self.pods if uid != ended],
            as_of_revision=self._seen,
            sources_ready=True,
        )
        if ended is not None:
            self.pods[ended].sure = False
        with self._noted(f"Reconcile but {ended}, of {self._seen}"):
            answer = await self.stub.Reconcile(request, timeout=PATIENCE_SECONDS)
        self.reconciled += 1
        wrong = set(answer.released_pod_uids) - {ended}
        if wrong:
            self.faults.append(f"{self.name}: Reconcile released {wrong}, which are active")
        if ended is None:
            return
        if ended in answer.released_pod_uids:
            del self.pods[ended]
        else:
            # It changed after the revision that was named, so it may not be released yet.
            self.pods[ended].sure = True

    async def _admit(self, known: Known) -> None:
        uid = known.request.pod.metadata.uid
        with self._noted(f"Admit {uid}"):
            await super()._admit(known)

    async def _release(self, uid: str) -> None:
        with self._noted(f"Release {uid}"):
            await super()._release(uid)
        if self.choose.random() < 0.1:
            await self._release_again(uid)

    async def _release_again(self, uid: str) -> None:
        try:
            await self.stub.Release(ad.ReleaseRequest(pod_uid=uid), timeout=PATIENCE_SECONDS)
        except aio.AioRpcError as error:
            if error.code() != StatusCode.NOT_FOUND:
                raise
            self.released_twice += 1
        else:
            self.faults.append(f"{self.name}: pod {uid} was released twice")

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        """Write down that something was begun, and how it ended."""
        started = time.monotonic()
        self.journal.append(f"{started:.4f} {what}")
        ending = "answered"
        try:
            yield
        except aio.AioRpcError as error:
            ending = f"{error.code().name}: {error.details()}"
            raise
        except asyncio.CancelledError:
            ending = "cancelled"
            raise
        finally:
            self.journal.append(f"{time.monotonic():.4f} {what}: {ending}")

    def _timeout(self) -> float:
        self._limit = super()._timeout()
        return self._limit


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9-]+", text)
