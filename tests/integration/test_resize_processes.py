"""Resizes over five processes that restart and are killed in between."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from grpc import aio
from tests.integration.books import faults_of
from tests.integration.node_document import document
from tests.integration.resized_pods import (
    addition,
    burstable,
    cpu_of,
    guaranteed,
    node_object,
    resize,
)
from tests.integration.world import World

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.processes


class ResizingWorld(World):
    """A node whose configuration is chosen, and whose processes die while a pod is resized."""

    def configure(self, **keys: object) -> None:
        """Replace keys of KubeletConfiguration."""
        (self.directory / "root").mkdir(exist_ok=True)
        settings = document(self.directory, hostRoot=str(self.directory / "root")) | keys
        (self.directory / "config.yaml").write_text(yaml.safe_dump(settings))

    async def admit(self, request: ad.AdmitRequest) -> ad.AdmitResponse:
        return await self.admission.Admit(request, timeout=60, wait_for_ready=True)

    async def set_node(self) -> None:
        request = ad.SetNodeRequest(node=node_object(cpu="8"))
        await self.admission.SetNode(request, timeout=60, wait_for_ready=True)

    async def restarted(self, process: str) -> None:
        """Kill a process and start it again."""
        self.kill(process)
        await self._dead(process)
        await self.restart(process)

    async def dies_resizing(self, request: ad.AdmitRequest, kill: Kill) -> bool:
        """Resize a pod and have a process die meanwhile; whether the call was answered."""
        self.kill_when(kill.process, kill.place, kill.count)
        try:
            await self.admission.Admit(request, timeout=60)
        except aio.AioRpcError:
            answered = False
        else:
            answered = True
        await self._dead(kill.process)
        await self.restart(kill.process)
        await self.ready()
        return answered

    async def records(self) -> dict[str, pb.AdmissionRecord]:
        listing = await self.admission.ListAdmissions(ad.ListAdmissionsRequest(), timeout=60)
        return {record.pod_uid: record for record in listing.admissions}

    async def faults(self) -> list[str]:
        """What record and books say against each other."""
        listing = await self.admission.ListAdmissions(ad.ListAdmissionsRequest(), timeout=60)
        states = [await p.GetState(hp.GetStateRequest(), timeout=60) for p in self._providers]
        return faults_of(listing, states)


@asynccontextmanager
async def world(*, together: bool = False, **keys: object) -> AsyncIterator[ResizingWorld]:
    with tempfile.TemporaryDirectory(prefix="na-") as directory:
        opened = ResizingWorld(Path(directory), together=together, seed=1)
        opened.configure(**keys)
        try:
            await opened.start()
            await opened.ready()
            yield opened
        finally:
            await opened.close()


async def test_a_pod_grows_waits_and_grows_again() -> None:
    """ADM-6, ALLOC-9, RSZ-5, RSZ-6, over restarts of who records and of who is asked."""
    async with world() as node:
        await node.set_node()
        for pod in (burstable("a", "2"), burstable("b", "4"), guaranteed("g", "1")):
            answer = await node.admit(addition(pod))
            assert answer.verdict == pb.VERDICT_ADMITTED, answer

        grown = await node.admit(resize(burstable("a", "3")))
        never = await node.admit(resize(guaranteed("g", "2")))
        later = await node.admit(resize(burstable("a", "5")))
        before = await node.records()

        for process in ("topology", "admission", "cpu"):
            await node.restarted(process)
        await node.ready()
        await node.set_node()
        after = await node.records()
        presented = await node.admit(addition(burstable("a", "5")))
        still_later = await node.admit(resize(burstable("a", "5")))
        await node.admission.Release(ad.ReleaseRequest(pod_uid="b"), timeout=60)
        granted = await node.admit(resize(burstable("a", "5")))
        last = await node.records()
        faults = await node.faults()

    assert (grown.verdict, cpu_of(grown.resources)) == (pb.VERDICT_ADMITTED, "3")
    assert (never.verdict, never.reason) == (pb.VERDICT_REJECTED, "Infeasible")
    assert (later.verdict, later.reason) == (pb.VERDICT_DEFERRED, "Deferred")
    assert later.message.endswith("cpu, requested: 5000, used: 5000, capacity: 8000")
    assert after == before
    assert (presented.already_admitted, presented.resize_pending) == (True, True)
    assert cpu_of(presented.resources) == "3"
    assert still_later.message == later.message
    assert granted.verdict == pb.VERDICT_ADMITTED
    assert {uid: cpu_of(record.resources) for uid, record in last.items()} == {"a": "5", "g": "1"}
    assert last["g"].allocations == before["g"].allocations
    assert faults == []


@dataclass(frozen=True)
class Kill:
    """A process that dies when it reaches a place for the count-th time."""

    process: str
    place: str
    count: int = 1


# Each resize is asked for twice: what a dry run says, and then for keeps.
FIVE = (
    Kill("topology", "admit.answered"),
    Kill("cpu", "allocate.entered", 2),
    Kill("cpu", "prepare.in-transaction"),
    Kill("cpu", "prepare.written"),
    Kill("topology", "row.in-transaction"),
    Kill("topology", "row.written"),
    Kill("cpu", "commit.entered"),
    Kill("admission", "door.answered"),
)
ONE = (
    Kill("all", "row.in-transaction"),
    Kill("all", "row.written"),
)


@pytest.mark.parametrize(
    ("kills", "together"),
    [pytest.param(FIVE, False, id="five-processes"), pytest.param(ONE, True, id="one-process")],
)
async def test_a_kill_leaves_the_old_or_the_new(kills: tuple[Kill, ...], together: bool) -> None:
    """A Guaranteed pod gets CPUs of its own by a resize: record and books have both or neither."""
    gates = {"InPlacePodVerticalScalingExclusiveCPUs": True}
    wanted = resize(guaranteed("a", "2"))
    async with world(
        together=together, featureGates=gates, topologyManagerPolicy="best-effort"
    ) as node:
        outcomes = set()
        for kill in kills:
            await node.admit(addition(guaranteed("a", "1500m")))
            answered = await node.dies_resizing(wanted, kill)
            record = (await node.records())["a"]
            new = cpu_of(record.resources) == "2"
            outcomes.add(new)
            assert new or cpu_of(record.resources) == "1500m", kill
            assert bool(record.allocations[0].cpus) is new, kill
            assert new or not answered, kill
            assert await node.faults() == [], kill

            again = await node.admit(wanted)
            assert (again.verdict, again.already_admitted) == (pb.VERDICT_ADMITTED, new), kill
            assert (await node.records())["a"].allocations[0].cpus, kill
            await node.admission.Release(ad.ReleaseRequest(pod_uid="a"), timeout=60)
        assert outcomes == {False, True}
