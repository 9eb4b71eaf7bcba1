"""A worker's operations over a recorder and stand-ins for whoever else it calls."""

# ruff: noqa: ARG002 - arguments are those of what it stands in for

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.unit.agent.made import container, pod

from numalign.model.feature_gates import FeatureGates
from numalign.telemetry.metrics import Metrics
from numalign.v1 import admission_pb2 as ad
from numalign_agent.containers.life import ContainerLife
from numalign_agent.metrics import AGENT
from numalign_agent.placements.keeper import PlacementKeeper
from numalign_agent.pod import AgentPod
from numalign_agent.pods.manager import PodManager
from numalign_agent.probes.results import Judged, judged
from numalign_agent.resizes.book import ResizeBook
from numalign_agent.runners.port import Placement, RuntimeContainer
from numalign_agent.runners.recorder import RecorderRunner
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.port import EventType
from numalign_agent.workers import work as w
from numalign_agent.workers.operations import ContainerOperations, OperationParts
from numalign_agent.workers.port import OperationFailed
from numalign_agent.workers.work import PodWork, Update, UpdateKind
from numalign_client.errors import (
    AdmissionError,
)


class Admission:
    """The calls around containers, in the order in which they came."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.prepared = ad.PrepareContainerResponse()
        self.failing: dict[str, AdmissionError] = {}

    async def prepare(self, pod_uid: str, container: str) -> ad.PrepareContainerResponse:
        self._note("prepare", pod_uid, container)
        return self.prepared

    async def add_container(self, pod_uid: str, container: str, container_id: str) -> None:
        self._note("add", pod_uid, container)

    async def remove_container(self, container_id: str) -> None:
        self._note("remove")

    async def release(self, pod_uid: str) -> None:
        self._note("release", pod_uid)

    def _note(self, what: str, *about: str) -> None:
        self.asked.append((what, *about))
        failure = self.failing.pop(what, None)
        if failure is not None:
            raise failure


class Probes:
    def __init__(self) -> None:
        self.followed: dict[str, int] = {}

    def follow(self, pod: AgentPod, containers: Sequence[RuntimeContainer]) -> None:
        self.followed[pod.uid] = len(containers)

    def judged(self, pod: AgentPod, containers: Sequence[RuntimeContainer]) -> Judged:
        return judged(pod, containers, {})

    def stop(self, pod_uid: str) -> None:
        self.followed.pop(pod_uid, None)


class Fussy(RecorderRunner):
    """A recorder that refuses what it is told to refuse; `pods` are those it made something of."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.refuses: dict[str, Exception] = {}
        self.pods: list[AgentPod] = []

    async def create_container(
        self, pod: AgentPod, container: str, attempt: int, placement: Placement
    ) -> str:
        self.pods.append(pod)
        return await super().create_container(pod, container, attempt, placement)

    async def start_container(self, container_id: str) -> None:
        if (failure := self.refuses.pop("start", None)) is not None:
            raise failure
        await super().start_container(container_id)


class Claims:
    """The claims of pods: prepared, or not yet."""

    def __init__(self) -> None:
        self.prepared: list[str] = []
        self.fails: OperationFailed | None = None

    async def prepare(self, pod: AgentPod) -> None:
        self.prepared.append(pod.uid)
        if self.fails is not None:
            raise self.fails

    def forget(self, pod_uids: Iterable[str]) -> None:
        self.prepared = [uid for uid in self.prepared if uid not in set(pod_uids)]


class World:
    def __init__(self) -> None:
        self.now = 1000.0
        self.calls = Admission()
        self.runner = Fussy(lambda: self.now)
        self.events: list[str] = []
        self.cache = StatusCache([])
        self.cache.event = self._event  # type: ignore[method-assign]
        self.probes = Probes()
        self.released: list[str] = []
        self.claims = Claims()
        self.resizes = ResizeBook(FeatureGates(), lambda: self.now)
        metrics = Metrics(AGENT, enabled=False)
        calls: Any = self.calls
        self.operations = ContainerOperations(
            OperationParts(
                runner=self.runner,
                life=ContainerLife(
                    self.runner, calls, PlacementKeeper(self.runner), self.cache, metrics
                ),
                calls=calls,
                cache=self.cache,
                pods=PodManager(),
                probes=self.probes,
                mirrors=None,
                resizes=self.resizes,
                devices=lambda _: {"a": [{"name": "example.com/gpu"}]},
                released=self.released.append,
                clock=lambda: self.now,
                claims=self.claims,
            )
        )

    def _event(self, pod: AgentPod, kind: EventType, reason: str, message: str) -> None:
        self.events.append(f"{kind.value} {reason} {message}")

    def work(self, of: AgentPod) -> PodWork:
        return w.began(w.first_work(Update(UpdateKind.CREATE, of), self.now, runtime_idle=True))

    async def sync(self, of: AgentPod) -> bool:
        return await self.operations.sync(self.work(of))

    def told(self) -> list[str]:
        return [f"{told.what} {told.container}" for told in self.runner.told]

    def phase(self, of: AgentPod) -> str:
        return str(self.cache.get(of.uid)["phase"])

    async def exit(self, name: str, code: int) -> None:
        found = await self.runner.get_pod("uid-p")
        assert found is not None
        (running,) = (c for c in found.containers if c.name == name and c.phase == "running")
        self.runner.exit(running.id, code)


PLAIN = pod("p", container("a"))
NEVER = pod("p", container("a"), restartPolicy="Never")
