"""Having drivers prepare the claims of pods, and undo it: what a kubelet's DRA manager does.

It brings checking, the book and the drivers together and decides nothing itself. Claims that two
pods share are worked on for one at a time; drivers are asked side by side, each in one call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from numalign.dra import claim_changes as changes
from numalign.dra import texts
from numalign.dra.answers import Judged, judged
from numalign.dra.checking import checked_claims
from numalign.dra.claim_book import ClaimBook
from numalign.dra.claim_locks import ClaimLocks
from numalign.dra.container_devices import ContainerDevices, devices_of_containers
from numalign.dra.driver_connection import DriverFailed
from numalign.dra.drivers import Drivers
from numalign.dra.naming import named_claims
from numalign.dra.observer import ClaimObserver
from numalign.dra.values import (
    Batches,
    ClaimInfo,
    ClaimKey,
    ClaimProblem,
    FetchedClaim,
    PodClaims,
)
from numalign.errors import StateError
from numalign.model.ids import PodUid
from numalign.model.revision import is_after
from numalign.telemetry.logs import get_logger

_log = get_logger("dra")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodToPrepare:
    """A pod, its claims by name as they were read (a text: an error), and what is recorded."""

    pod: PodClaims
    fetched: Mapping[str, FetchedClaim | str]
    revision: int
    recorded: Sequence[ClaimInfo] = field(default=())


class ClaimManager:
    """The claims of one node."""

    def __init__(self, book: ClaimBook, drivers: Drivers, observer: ClaimObserver) -> None:
        self._book = book
        self._drivers = drivers
        self._observer = observer
        self._locks = ClaimLocks()
        observer.count(book.claims)

    async def prepare(self, asked: PodToPrepare) -> tuple[ContainerDevices, ...]:
        """Have the claims of a pod prepared; what its containers get.

        Raises ClaimProblem with the cause in the kubelet's words, InvalidInput for claims that
        the caller left out, StateNotWritten where the book cannot be written.
        """
        with self._observer.operation("PrepareResources"):
            pod = asked.pod
            keys = [ClaimKey(pod.namespace, claim.name) for claim in named_claims(pod)]
            async with self._locks.held(keys):
                await self._adopt(asked.recorded)
                claims = checked_claims(
                    pod, asked.fetched, self._book.claims, self._drivers.is_registered
                )
                kept = await self._book.change(
                    lambda c: changes.joined(c, pod.uid, asked.revision, claims)
                )
                await self._ask(texts.PREPARE, changes.to_prepare(kept, claims))
                self._observer.count(self._book.claims)
                return devices_of_containers(pod, self._book.claims)

    async def unprepare(self, pod_uid: PodUid, recorded: Iterable[ClaimInfo] = ()) -> None:
        """A pod has ended: claims that it was the last user of are given back.

        Raises ClaimProblem with the cause: what drivers have not given back is kept.
        """
        with self._observer.operation("UnprepareResources"):
            await self._adopt(recorded)
            await self._unprepare(pod_uid)

    async def reconcile(
        self, active: Collection[PodUid], as_of: int, recorded: Iterable[ClaimInfo]
    ) -> tuple[str, ...]:
        """Give back the claims of pods that there are not any more; what could not be (DRA-33).

        Pods that were admitted after revision `as_of` are left alone.
        """
        if not self._book.whole:
            await self._book.complete(partial(changes.adopted, recorded=tuple(recorded)))
        users = {uid for info in self._book.claims.values() for uid in info.pods}
        problems = []
        for pod_uid in sorted(users - frozenset(active)):
            try:
                await self._unprepare(pod_uid, as_of)
            except ClaimProblem as problem:
                problems.append(f"pod {pod_uid}: {texts.not_unprepared(str(problem))}")
        return tuple(problems)

    async def _unprepare(self, pod_uid: PodUid, as_of: int | None = None) -> None:
        """Give back what a pod uses; nothing of one that was prepared after revision `as_of`."""
        keys: tuple[ClaimKey, ...] = ()
        while True:
            async with self._locks.held(keys):
                used = changes.used_by(self._book.claims, pod_uid)
                if set(used) <= set(keys):
                    revisions = [self._book.claims[key].pods[pod_uid] for key in used]
                    if as_of is None or not any(is_after(r, as_of) for r in revisions):
                        await self._give_back(pod_uid)
                    return
            # It has come to use another one, which may be worked on by somebody else.
            keys = used

    async def _give_back(self, pod_uid: PodUid) -> None:
        kept = await self._book.change(lambda c: changes.without_shared(c, pod_uid))
        await self._ask(texts.UNPREPARE, changes.to_unprepare(kept, pod_uid))
        self._observer.count(await self._book.change(lambda c: changes.without_ended(c, pod_uid)))

    async def _adopt(self, recorded: Iterable[ClaimInfo]) -> None:
        if not self._book.whole:
            await self._book.change(partial(changes.adopted, recorded=tuple(recorded)))

    async def _ask(self, call: str, batches: Batches) -> None:
        """Ask every driver for its batch. Raises the first problem; who is not there is first."""
        # Who cannot be asked is not noted as asked: what it has said so far holds.
        there = {d: batch for d, batch in batches.items() if self._drivers.is_registered(d)}
        problems = [texts.not_registered(d) for d in batches if d not in there]
        await self._book.change(lambda c: changes.asked(c, there))
        outcomes = await asyncio.gather(
            *(self._ask_one(call, driver, batch) for driver, batch in there.items())
        )
        problems += [problem for problem in outcomes if problem is not None]
        for problem in problems[1:]:
            _log.warning("another driver failed as well", problem=problem)
        if problems:
            raise ClaimProblem(problems[0])

    async def _ask_one(self, call: str, driver: str, batch: Sequence[ClaimInfo]) -> str | None:
        try:
            plugin = self._drivers.plugin_of(driver)
            ask = plugin.prepare if call == texts.PREPARE else plugin.unprepare
            outcome = judged(call, batch, await ask(batch))
        except ClaimProblem as problem:
            return str(problem)
        except DriverFailed as error:
            return texts.call_failed(call, str(error))
        try:
            await self._note(call, driver, outcome)
        except StateError as error:
            # What the driver did is not lost: it is asked again, and says the same.
            return f"checkpoint ResourceClaim state: {error}"
        return outcome.problem

    async def _note(self, call: str, driver: str, outcome: Judged) -> None:
        if call == texts.PREPARE:
            await self._book.change(lambda c: changes.prepared(c, driver, outcome.done))
        else:
            await self._book.change(lambda c: changes.unprepared(c, driver, outcome.done))
