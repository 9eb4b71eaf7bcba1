"""Callers of one node that remember what they were told, and make trouble on purpose.

Shared by tests that break the node meanwhile: whatever happens to it, what an agent was told
must be true afterwards, and what it was not told must be all there or not there at all.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field

from grpc import StatusCode, aio
from tests.integration.books import held_by
from tests.integration.node_document import pod

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

NO_DECISION = {
    StatusCode.UNAVAILABLE,
    StatusCode.CANCELLED,
    StatusCode.DEADLINE_EXCEEDED,
    StatusCode.RESOURCE_EXHAUSTED,
}
"""What a call may end with when services die under it."""


CUT_OFF = "Internal error from Core"
"""How gRPC tells a caller whose stream ended, whatever the reason, while it still sent."""

MOST_IN_STREAM = 5


@dataclass
class Known:
    """What an agent knows of one pod.

    `sure` is false after a call without an answer, `starting` after an AddContainer without
    one; `started` once that call was made, from when on init containers hold less.
    """

    request: ad.AdmitRequest
    answer: ad.AdmitResponse | None = None
    sure: bool = True
    starting: bool = False
    started: bool = False


@dataclass
class Agent:
    """One caller with pods of its own, which it admits and releases one call at a time.

    `heard` is set whenever a pod was admitted that had not been, as far as it knew.
    """

    name: str
    stub: ad_grpc.AdmissionAsyncStub
    choose: random.Random
    most_pods: int = 3
    pods: dict[str, Known] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    answered: int = 0
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    _number: int = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Call until told to stop."""
        while not stop.is_set():
            try:
                await self.step()
                self.answered += 1
            except aio.AioRpcError as error:
                if error.code() not in NO_DECISION and error.details() != CUT_OFF:
                    self.faults.append(f"{self.name}: {error.code()}: {error.details()}")
                if error.code() == StatusCode.UNAVAILABLE:
                    await asyncio.sleep(0.005)

    async def release_all(self) -> None:
        """Release every pod, patiently."""
        for uid in tuple(self.pods):
            await self.stub.Release(ad.ReleaseRequest(pod_uid=uid), timeout=60.0)
            del self.pods[uid]

    async def settle(self) -> None:
        """Make the calls again that have no answer and that an agent must repeat."""
        for uid in [uid for uid, known in self.pods.items() if known.starting]:
            await self._add_container(uid, give_up=False)

    def check(self, listing: ad.ListAdmissionsResponse) -> list[str]:
        """Compare what the agent knows with the list; what it was not sure of it learns."""
        faults, self.faults = self.faults, []
        recorded = {record.pod_uid: record for record in listing.admissions}
        for uid, known in tuple(self.pods.items()):
            record = recorded.get(uid)
            if known.sure and known.answer is not None and record is None:
                faults.append(f"{self.name}: pod {uid} was admitted and is gone")
            if known.sure and known.answer is None and record is not None:
                faults.append(f"{self.name}: pod {uid} was not admitted and is there")
            if record is None:
                del self.pods[uid]
                continue
            if not _same(known, record.allocations):
                faults.append(f"{self.name}: pod {uid} was told {known.answer}, not {record}")
            known.answer = ad.AdmitResponse(
                allocations=record.allocations, pod_allocation=record.pod_allocation
            )
            known.sure = True
        faults += [
            f"{self.name}: pod {uid} is admitted and was never asked for"
            for uid, record in recorded.items()
            if record.owner == self.name and uid not in self.pods
        ]
        return faults

    async def step(self) -> None:
        """Make one call."""
        held = [uid for uid, known in self.pods.items() if known.answer or not known.sure]
        action = self.choose.random()
        if held and (len(held) >= self.most_pods or action < 0.35):
            await self._release(self.choose.choice(held))
        elif held and action < 0.45:
            await self._admit(self.pods[self.choose.choice(held)])
        elif held and action < 0.5:
            await self._add_container(self.choose.choice(held), give_up=True)
        elif action < 0.65:
            await self._admit_many(held)
        else:
            await self._admit_new(dry_run=action > 0.9)

    async def _admit_new(self, *, dry_run: bool) -> None:
        request = self._new_request()
        if dry_run:
            request.dry_run = True
            await self.stub.Admit(request, timeout=self._timeout())
            return
        known = self.pods[request.pod.metadata.uid] = Known(request)
        await self._admit(known)

    async def _admit_many(self, held: Sequence[str]) -> None:
        """Admit new pods in one stream, with one among them that is admitted, or comes twice."""
        new = [self._new_request() for _ in range(self.choose.randint(2, MOST_IN_STREAM))]
        for request in new:
            self.pods[request.pod.metadata.uid] = Known(request)
        again = self.choose.choice((*held, new[0].pod.metadata.uid))
        asked = [self.pods[request.pod.metadata.uid] for request in new]
        asked.insert(self.choose.randint(1, len(asked)), self.pods[again])
        before = {known.request.pod.metadata.uid: known.sure for known in asked}
        for known in asked:
            known.sure = False
        items = [ad.AdmitPodsRequest(admit=known.request) for known in asked]
        answers = self.stub.AdmitPods(iter(items), timeout=self._timeout())
        try:
            async for answer in _until_broken(answers):
                known = asked[0]
                uid = known.request.pod.metadata.uid
                if answer.pod_uid != uid:
                    self.faults.append(f"{self.name}: {answer.pod_uid} is answered, not {uid}")
                if answer.HasField("decision"):
                    # It may have been refused before, when it came for the first time.
                    self._learn(self.pods.setdefault(uid, known), before[uid], answer.decision)
                    before[uid] = True
                elif answer.error.code in {code.value[0] for code in NO_DECISION}:
                    self._doubt(known)
                else:
                    self.faults.append(f"{self.name}: {uid}: {answer.error}")
                asked.pop(0)
        finally:
            for known in asked:
                self._doubt(known)
        if asked:
            self.faults.append(f"{self.name}: {len(asked)} pods of a stream have no answer")

    def _new_request(self) -> ad.AdmitRequest:
        self._number += 1
        return ad.AdmitRequest(
            pod=pod(
                f"{self.name}-{self._number}",
                cpu=self.choose.choice((1, 1, 2, 4)),
                gpus=self.choose.choice((0, 1, 1, 2)),
                init_cpu=self.choose.choice((0, 0, 1)),
            ),
            owner=self.name,
        )

    async def _admit(self, known: Known) -> None:
        was_sure, known.sure = known.sure, False
        answer = await self.stub.Admit(known.request, timeout=self._timeout())
        self._learn(known, was_sure, answer)

    def _learn(self, known: Known, was_sure: bool, answer: ad.AdmitResponse) -> None:
        uid = known.request.pod.metadata.uid
        known.sure = True
        if answer.verdict != pb.VERDICT_ADMITTED:
            if known.answer is not None and was_sure:
                self.faults.append(f"{self.name}: pod {uid} was admitted, and is {answer.reason}")
            del self.pods[uid]
        elif known.answer is None or not was_sure:
            known.answer = answer
            self.heard.set()
        elif not _same(known, answer.allocations):
            self.faults.append(f"{self.name}: pod {uid} had {known.answer}, and has {answer}")

    def _doubt(self, known: Known) -> None:
        """Nobody has said what came of the last question about a pod, which may be there.

        When it came for the first time in the same stream it may have been refused.
        """
        known.sure = False
        if known.request.pod.metadata.uid not in self.pods:
            known.answer = None
            self.pods[known.request.pod.metadata.uid] = known

    async def _release(self, uid: str) -> None:
        known = self.pods[uid]
        was_sure, known.sure = known.sure, False
        try:
            await self.stub.Release(ad.ReleaseRequest(pod_uid=uid), timeout=self._timeout())
        except aio.AioRpcError as error:
            if error.code() != StatusCode.NOT_FOUND:
                raise
            if was_sure:
                self.faults.append(f"{self.name}: pod {uid} was admitted and is not found")
        del self.pods[uid]

    async def _add_container(self, uid: str, *, give_up: bool) -> None:
        request = ad.AddContainerRequest(pod_uid=uid, container_name="c", container_id=f"id-{uid}")
        known = self.pods[uid]
        known.starting = known.started = True
        try:
            await self.stub.AddContainer(request, timeout=self._timeout() if give_up else 60.0)
        except aio.AioRpcError as error:
            if error.code() != StatusCode.NOT_FOUND:
                raise
            if known.sure:
                self.faults.append(f"{self.name}: pod {uid} was admitted and is not found")
        known.starting = False

    def _timeout(self) -> float:
        # Some calls are given up somewhere in the middle.
        return self.choose.uniform(0.001, 0.008) if self.choose.random() < 0.05 else 60.0


async def _until_broken(
    answers: AsyncIterable[ad.AdmitPodsResponse],
) -> AsyncIterator[ad.AdmitPodsResponse]:
    """The answers; a stream that grpc gives up while it writes a request ends in UNAVAILABLE.

    It says so as if the caller had cancelled it.
    """
    try:
        async for answer in answers:
            yield answer
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        nothing = aio.Metadata()
        raise aio.AioRpcError(StatusCode.UNAVAILABLE, nothing, nothing, CUT_OFF) from None


def _same(known: Known, allocations: Iterable[pb.ContainerAllocation]) -> bool:
    """Whether a pod still holds what its agent was told."""
    if known.answer is None:
        return True
    told, held = held_by(known.answer.allocations), held_by(allocations)
    if known.started:
        told.pop("i", None)
        held.pop("i", None)
    return told == held
