"""A caller whose pods share resource claims, over a driver that is a process of its own.

Separate from the other callers: what counts here is what the driver holds in the end.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from grpc import StatusCode, aio
from tests.integration.agents import NO_DECISION
from tests.integration.dra_world import DRIVER, Place, claiming_pod, fetched
from tests.integration.dra_world import claim as claim_document

from numalign.kube.core.v1.core_pb2 import Pod
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

CLAIMS = ("c0", "c1", "c2")
MOST_PODS = 3
SECONDS = 10.0
PAUSE_SECONDS = 0.02
OWNER = "claims"


@dataclass
class ClaimCaller:
    """Admits, prepares and releases pods; `pods` are those that may use claims now."""

    stub: ad_grpc.AdmissionAsyncStub
    files: Place
    choose: random.Random
    pods: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ending: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    prepared: int = 0
    _number: int = 0

    def begin(self) -> None:
        """Make devices and claims, and start the driver."""
        for name in CLAIMS:
            self.files.device(f"card-{name}")
            self.files.claim(name, f"u-{name}", device=f"card-{name}")
        self.files.driver()

    async def run(self, stop: asyncio.Event) -> None:
        """Call until told to stop."""
        while not stop.is_set():
            await self._tried(self._step)
            await asyncio.sleep(PAUSE_SECONDS)

    async def settle(self) -> None:
        """Make every call again that has no answer: then each pod holds its claims, or nothing."""
        async with asyncio.timeout(60):
            while self.ending or not all([await self._tried(self._held, u) for u in self.pods]):
                for uid in tuple(self.ending):
                    await self._tried(self._release, uid)

    def check(self, listing: ad.ListAdmissionsResponse) -> list[str]:
        """Compare what the driver holds with what the pods use; settled, and nobody calling."""
        faults, self.faults = self.faults, []
        wanted = sorted({f"u-{claim}" for claims in self.pods.values() for claim in claims})
        if (left := self.files.left()) != wanted:
            faults.append(f"claims: the driver holds {left}, and pods use {wanted}")
        listed = {record.pod_uid for record in listing.admissions if record.owner == OWNER}
        if listed != self.pods.keys():
            faults.append(f"claims: {listed} are admitted, not {set(self.pods)}")
        done = self.files.done()
        for claim in CLAIMS:
            more = done[f"prepared u-{claim}"] - done[f"unprepared u-{claim}"]
            if more != (f"u-{claim}" in wanted):
                faults.append(f"claims: {claim} was prepared {more} times more than given back")
        return faults

    async def release_all(self) -> None:
        """Release every pod."""
        self.ending.update(self.pods)
        await self.settle()

    async def _step(self) -> None:
        uid = self.choose.choice([*self.pods, ""])
        if uid in self.ending or (uid and len(self.pods) >= MOST_PODS):
            await self._release(uid)
        elif uid:
            await self._held(uid)
        elif len(self.pods) < MOST_PODS:
            self._number += 1
            claims = tuple(self.choose.sample(CLAIMS, self.choose.choice((1, 2))))
            self.pods[f"claims-{self._number}"] = claims
            await self._held(f"claims-{self._number}")

    async def _held(self, uid: str) -> bool:
        """Have a pod admitted and its claims prepared, again or for the first time."""
        claims, pod = self.pods[uid], claiming_pod(uid, *self.pods[uid])
        await self.stub.Admit(ad.AdmitRequest(pod=pod, owner=OWNER), timeout=SECONDS)
        if not await self._prepared(uid, pod):
            return False
        container = await self.stub.PrepareContainer(
            ad.PrepareContainerRequest(pod_uid=uid, container_name="c"), timeout=SECONDS
        )
        names = [f"{DRIVER}/claim=u-{claim}-card-{claim}" for claim in claims]
        if list(container.edits.cdi_devices) != names:
            self.faults.append(f"claims: {uid} got {container.edits}, not {names}")
        self.prepared += 1
        return True

    async def _prepared(self, uid: str, pod: Pod) -> bool:
        claims = [
            fetched(claim_document(c, f"u-{c}", uid, devices={DRIVER: (f"card-{c}",)}))
            for c in self.pods[uid]
        ]
        answer = await self.stub.PreparePod(
            ad.PreparePodRequest(pod=pod, claims=claims), timeout=SECONDS
        )
        return answer.verdict == pb.VERDICT_ADMITTED

    async def _release(self, uid: str) -> bool:
        self.ending.add(uid)
        try:
            await self.stub.Release(ad.ReleaseRequest(pod_uid=uid), timeout=SECONDS)
        except aio.AioRpcError as error:
            if error.code() is not StatusCode.NOT_FOUND:
                raise
        self.ending.discard(uid)
        del self.pods[uid]
        return True

    async def _tried(self, call: object, *arguments: str) -> bool:
        assert callable(call)
        try:
            return bool(await call(*arguments))
        except aio.AioRpcError as error:
            if error.code() not in NO_DECISION:
                self.faults.append(f"claims: {error.code()}: {error.details()}")
            await asyncio.sleep(PAUSE_SECONDS)
            return False
