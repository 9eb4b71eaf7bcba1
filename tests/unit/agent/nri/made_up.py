"""Sandboxes, containers and an Admission made up for tests of what stands between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from typing import Any

import pytest

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.telemetry.metrics import Metrics
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_agent.nri.admission import (
    Admission,
    Decision,
    NoAnswer,
    NotRecorded,
    Prepared,
    Verdict,
)
from numalign_agent.nri.api_calls import PodApi
from numalign_agent.nri.books import Books
from numalign_agent.nri.chores import Chores
from numalign_agent.nri.evictions import Evictions
from numalign_agent.nri.judge import Judge
from numalign_agent.nri.known import Record, Refusal, Sandbox, SeenContainer
from numalign_agent.nri.metrics import NRI
from numalign_agent.nri.ownership import Ownership
from numalign_agent.nri.placing import Placing
from numalign_agent.nri.plan.drift import Actual
from numalign_agent.nri.plan.estimate import CgroupSettings
from numalign_agent.nri.plan.pinning import Pinning
from numalign_agent.nri.pod_specs.port import FirstOf, PodDocument, Wanted
from numalign_agent.nri.reporter import Reporter
from numalign_agent.nri.runtime_events import RuntimeEvents
from numalign_agent.nri.settings import NriSettings
from numalign_agent.nri.wire.errors import CallFailed
from numalign_agent.pod import AgentPod

OWNER = "default"
GUARANTEED, BURSTABLE = "/kubepods/pod", "/kubepods/burstable/pod"


def sandbox(pod: str, *, attempt: int = 0, pid: int = 1) -> Sandbox:
    return Sandbox(
        id=f"sandbox-{pod}-{attempt}",
        pod_uid=f"uid-{pod}",
        name=pod,
        namespace="default",
        pid=pid,
    )


def container(
    pod: str, name: str = "app", *, cpus: str = "", mems: str = "", attempt: int = 0, age: int = 0
) -> SeenContainer:
    return SeenContainer(
        id=f"{pod}-{name}-{attempt}",
        name=name,
        sandbox_id=f"sandbox-{pod}-{attempt}",
        set_to=Pinning(CpuSet.parse(cpus), CpuSet.parse(mems)),
        settings=CgroupSettings(parent=f"{BURSTABLE}{pod}"),
        created_at=age,
    )


def record(revision: int = 1, owner: str = OWNER, **cpus: str) -> Record:
    """An admission that gives containers exclusive CPUs, or none ("")."""
    grants = {
        name: Pinning(CpuSet.parse(text), NO_CPUS, exclusive=bool(text))
        for name, text in cpus.items()
    }
    return Record(owner, revision, grants)


def pod_message(pod: str, annotations: Mapping[str, str] | None = None) -> nri.PodSandbox:
    message = nri.PodSandbox(
        id=f"sandbox-{pod}-0", name=pod, uid=f"uid-{pod}", namespace="default", pid=1
    )
    message.annotations.update(annotations or {})
    message.linux.cgroup_parent = f"{BURSTABLE}{pod}"
    return message


def container_message(pod: str, name: str = "app", *, cpus: str = "") -> nri.Container:
    message = nri.Container(
        id=f"{pod}-{name}-0", pod_sandbox_id=f"sandbox-{pod}-0", name=name, pid=2
    )
    message.state = nri.CONTAINER_RUNNING
    message.linux.resources.cpu.cpus = cpus
    return message


class FakeSpecs:
    """Knows every pod, but those in `unknown`; a pod's annotation says how many CPUs it wants."""

    name = "fake"

    def __init__(self) -> None:
        self.unknown: set[str] = set()
        self.cpus: dict[str, int] = {}
        self.spec: dict[str, Any] = {}

    async def find(self, wanted: Wanted) -> PodDocument | None:
        if wanted.uid in self.unknown:
            return None
        cpu = self.cpus.get(wanted.uid, 0)
        return {
            "metadata": {"uid": wanted.uid, "name": wanted.name, "namespace": "default"},
            "spec": {"containers": [{"name": "app"}], "cpus": cpu, **self.spec},
        }

    async def close(self) -> None: ...


class FakeAdmission(Admission):
    """Gives exclusive CPUs from the highest down; those of `reserved` are always shared."""

    def __init__(self, cpus: int = 4, owner: str = OWNER) -> None:
        self.owner = owner
        self.hangs = False
        self.free = CpuSet.of(range(1, cpus))
        self.pool = CpuSet.of(range(cpus))
        self.given: dict[str, CpuSet] = {}
        self.asked: list[str] = []
        self.told: list[tuple[str, ...]] = []
        self.revision = 0
        self.broken: Exception | None = None
        self.slow = 0.0
        self.answer: Decision | None = None
        self.edits = pb.ContainerEdits()
        self.hugepages: dict[str, int] = {}
        self.devices: frozenset[str] = frozenset()
        self.ready = asyncio.Event()
        self.ready.set()
        self.prepared = 0
        self.events: asyncio.Queue[ad.WatchAssignmentsResponse] = asyncio.Queue()

    async def close(self) -> None: ...

    async def admit(self, pod: Mapping[str, Any], seconds: float) -> Decision:
        uid = str(pod["metadata"]["uid"])
        self.asked.append(uid)
        await self._may_fail(seconds)
        if self.answer is not None:
            return self.answer
        if uid not in self.given:
            wanted = int(pod["spec"].get("cpus", 0))
            if wanted > len(self.free):
                refusal = Refusal("TopologyAffinityError", "no room")
                return Decision(Verdict.REJECTED, refusal=refusal)
            found = CpuSet.of(sorted(self.free)[len(self.free) - wanted :])
            self.given[uid] = found
            self.free -= found
            self.revision += 1
        return Decision(Verdict.ADMITTED, record=self.record_of(uid))

    def record_of(self, uid: str) -> Record:
        cpus = self.given[uid]
        grants = {"app": Pinning(cpus, exclusive=bool(cpus))}
        return Record(self.owner, self.revision, grants, self.devices)

    async def prepare(self, pod_uid: str, container: str, seconds: float) -> Prepared:
        assert container
        await self._may_fail(seconds)
        self.prepared += 1
        await self.ready.wait()
        if pod_uid not in self.given:
            raise NotRecorded(pod_uid)
        cpus = self.given[pod_uid]
        pinning = Pinning(cpus or self.shared(), exclusive=bool(cpus))
        return Prepared(pinning, self.hugepages, self.edits, bool(self.devices))

    async def add_container(self, uid: str, name: str, container_id: str, seconds: float) -> None:
        await self._may_fail(seconds)
        self.told.append(("add", uid, name, container_id))

    async def remove_container(self, container_id: str, seconds: float) -> None:
        await self._may_fail(seconds)
        self.told.append(("remove", container_id))

    async def release(self, pod_uid: str, seconds: float) -> int:
        await self._may_fail(seconds)
        self.told.append(("release", pod_uid))
        if pod_uid not in self.given:
            raise NotRecorded(pod_uid)
        self.free |= self.given.pop(pod_uid)
        self.revision += 1
        return self.revision

    async def reconcile(
        self,
        active: Iterable[str],
        running: Iterable[tuple[str, str, str]],
        revision: int,
        seconds: float,
    ) -> tuple[str, ...]:
        assert all(len(triple) == 3 for triple in running)
        assert revision >= 0
        await self._may_fail(seconds)
        gone = tuple(uid for uid in self.given if uid not in set(active))
        for uid in gone:
            self.free |= self.given.pop(uid)
        return gone

    async def changes(self) -> AsyncIterator[ad.WatchAssignmentsResponse]:
        yield ad.WatchAssignmentsResponse(
            shared_cpus=ad.SharedCpus(cpus=str(self.shared())), revision=self.revision
        )
        yield ad.WatchAssignmentsResponse(synced=ad.Synced(), revision=self.revision)
        while True:
            yield await self.events.get()

    def shared(self) -> CpuSet:
        shared = self.pool
        for cpus in self.given.values():
            shared -= cpus
        return shared

    async def _may_fail(self, seconds: float) -> None:
        if self.slow:
            if self.slow >= seconds:
                self.hangs = True
                raise NoAnswer(f"no answer within {seconds:g} s", in_time=False)
            await asyncio.sleep(self.slow)
        if self.broken is not None:
            raise self.broken
        self.hangs = False


class FakeApi(PodApi):
    """An API that remembers what it was told."""

    def __init__(self) -> None:
        self.warnings: list[tuple[str, str, str]] = []
        self.evicted: list[str] = []

    async def warn(self, about: AgentPod, reason: str, message: str) -> None:
        self.warnings.append((about.name, reason, message))

    async def evict(self, namespace: str, name: str, uid: str) -> bool:
        assert namespace
        assert name
        self.evicted.append(uid)
        return True

    async def close(self) -> None: ...


class World:
    """Everything between the runtime's events and Admission, without a socket."""

    def __init__(self, cpus: int = 4, **settings: Any) -> None:
        self.settings = NriSettings(**settings)
        self.admission = FakeAdmission(cpus)
        self.specs = FakeSpecs()
        self.api = FakeApi()
        self.metrics = Metrics(NRI, enabled=True)
        ownership = Ownership(None)
        self.books = Books(OWNER, ownership, set_quota=self.settings.lift_quota)
        self.books.pool_is(self.admission.pool)
        self.reporter = Reporter(self.metrics, self.api)
        self.evictions = Evictions(self.api)
        self.judge = Judge(
            self.books,
            self.admission,
            FirstOf([self.specs]),
            self.reporter,
            self.evictions,
            self.settings,
        )
        self.chores = Chores(self.admission, self.judge, self.books)
        self.placing = Placing(self.books, self.admission, self.reporter, self.settings)
        self.woken = 0
        self.kernel: dict[str, Actual] = {}
        self.events = RuntimeEvents(
            self.books,
            self.admission,
            self.judge,
            self.placing,
            self.chores,
            self.reporter,
            ownership,
            self.settings,
            lambda _: 0,
            self.kernel.get,
            self.wake,
        )

    def wake(self) -> None:
        self.woken += 1

    async def run(
        self, pod: str, cpus: int = 0, annotations: Mapping[str, str] | None = None
    ) -> None:
        self.specs.cpus[f"uid-{pod}"] = cpus
        await self.events.run_pod_sandbox(pod_message(pod, annotations))

    async def create(self, pod: str, name: str = "app") -> nri.CreateContainerResponse:
        return await self.events.create_container(pod_message(pod), container_message(pod, name))

    async def end(self, pod: str) -> None:
        await self.events.stop_pod_sandbox(pod_message(pod))
        await self.events.remove_pod_sandbox(pod_message(pod))
        await self.do_chores()

    async def do_chores(self) -> None:
        running = asyncio.create_task(self.chores.run())
        async with asyncio.timeout(60):
            await self.chores.idle.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        self.books.pool_is(self.admission.shared())

    def decisions(self) -> dict[str, float]:
        """How many pods came to each end."""
        found = {}
        for line in self.metrics.text().splitlines():
            if line.startswith("numalign_agent_nri_decisions_total{"):
                name, _, count = line.rpartition(" ")
                if float(count):
                    found[name.split('"')[1]] = float(count)
        return found


def with_devices(world: World, **edits: Any) -> None:
    """Have Admission answer with what device plugins want in the container."""
    world.admission.devices = frozenset({"app"})
    for name, value in edits.items():
        field = getattr(world.admission.edits, name)
        if isinstance(value, dict):
            field.update(value)
        else:
            for item in value:
                if isinstance(item, str):
                    field.append(item)
                else:
                    field.add(**item)


async def refusal(call: Awaitable[object]) -> CallFailed:
    """What a call failed with."""
    with pytest.raises(CallFailed) as caught:
        await call
    return caught.value
