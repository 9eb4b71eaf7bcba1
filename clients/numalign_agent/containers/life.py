"""Starting and ending single containers, with Admission told at every step.

Separate from the worker's operations, which say what to do and when.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign.v1 import types_pb2 as pb
from numalign_agent.admitting.calls import AdmissionCalls
from numalign_agent.admitting.trouble import Trouble, trouble_of
from numalign_agent.backoff import Backoff
from numalign_agent.cgroups.hugepages import limits_of
from numalign_agent.containers.plan import Start
from numalign_agent.metrics import CONTAINERS_STARTED
from numalign_agent.placements.keeper import PlacementKeeper
from numalign_agent.pod import AgentPod
from numalign_agent.runners.port import (
    ContainerPhase,
    ContainerRefused,
    Placement,
    PodRunner,
    RunnerFailed,
    RuntimeContainer,
)
from numalign_agent.spans import pod_span
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.container_statuses import Waiting
from numalign_agent.status.port import EventType
from numalign_agent.workers.port import OperationFailed
from numalign_client.errors import AdmissionError

ADMISSION_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 10.0
"""How long a container waits at most where Admission cannot serve again and again."""

_log = get_logger("containers")


@dataclass(frozen=True, slots=True)
class NotStarted(Exception):
    """A container could not be started; the pod's status says why."""

    waiting: Waiting


class ContainerLife:
    """Starts, stops and removes containers."""

    def __init__(
        self,
        runner: PodRunner,
        calls: AdmissionCalls,
        placements: PlacementKeeper,
        cache: StatusCache,
        metrics: Metrics,
    ) -> None:
        self._runner = runner
        self._calls = calls
        self._placements = placements
        self._cache = cache
        self._metrics = metrics
        self._backoffs: dict[str, Backoff] = {}

    def forget(self, pod_uids: Iterable[str]) -> None:
        """These pods are gone."""
        for uid in pod_uids:
            self._backoffs.pop(uid, None)

    async def start(self, pod: AgentPod, start: Start) -> None:
        """Prepare a container, make it, tell Admission, and start it.

        Raises NotStarted for a container that cannot be started as it is, OperationFailed where
        Admission is not there.
        """
        with pod_span("start container", pod.uid, pod.namespace, pod.name, start.spec.name):
            await self._start(pod, start)

    async def _start(self, pod: AgentPod, start: Start) -> None:
        name = start.spec.name
        placement = await self._prepared(pod, name)
        try:
            container_id = await self._runner.create_container(pod, name, start.attempt, placement)
        except ContainerRefused as error:
            raise self._failed(pod, "CreateContainerConfigError", str(error)) from error
        except RunnerFailed as error:
            raise self._failed(pod, "CreateContainerError", str(error)) from error
        try:
            await self._add(pod, name, container_id)
            self._backoffs.pop(pod.uid, None)
            await self._placements.starting(container_id, pod.uid, name, placement)
        except (OperationFailed, RunnerFailed) as error:
            await self.remove(container_id)
            if isinstance(error, OperationFailed):
                raise
            raise self._failed(pod, "CreateContainerError", str(error)) from error
        self._cache.event(pod, EventType.NORMAL, "Created", f"Created container: {name}")
        try:
            await self._runner.start_container(container_id)
        except RunnerFailed as error:
            self._placements.ended(container_id)
            raise self._failed(pod, "RunContainerError", str(error)) from error
        self._metrics.counter(CONTAINERS_STARTED).labels(start.spec.kind.value).inc()
        self._cache.event(pod, EventType.NORMAL, "Started", f"Started container {name}")

    async def stop(
        self, pod: AgentPod, container: RuntimeContainer, grace: float, why: str = ""
    ) -> None:
        """End a container. Raises OperationFailed if it does not end."""
        text = why or f"Stopping container {container.name}"
        self._cache.event(pod, EventType.NORMAL, "Killing", text)
        try:
            await self._runner.stop_container(container.id, grace)
        except RunnerFailed as error:
            raise OperationFailed(str(error)) from error
        self._placements.ended(container.id)

    async def remove(self, container_id: str) -> None:
        """Forget a container that does not run, here and at Admission.

        Raises OperationFailed where one of them does not.
        """
        self._placements.ended(container_id)
        try:
            await self._calls.remove_container(container_id)
            await self._runner.remove_container(container_id)
        except AdmissionError as error:
            raise OperationFailed(
                f"container {container_id} is not forgotten: {error.message}",
                ADMISSION_RETRY_SECONDS,
            ) from error
        except RunnerFailed as error:
            raise OperationFailed(str(error)) from error

    async def remove_all(self, containers: tuple[RuntimeContainer, ...], *, keep: int) -> None:
        """Forget dead containers, but for the last `keep` attempts at each (LOOP-4)."""
        by_name: dict[str, list[RuntimeContainer]] = {}
        for container in containers:
            by_name.setdefault(container.name, []).append(container)
        for attempts in by_name.values():
            attempts.sort(key=lambda container: container.attempt, reverse=True)
            for container in attempts[keep:]:
                if container.phase is not ContainerPhase.RUNNING:
                    await self.remove(container.id)

    async def _prepared(self, pod: AgentPod, name: str) -> Placement:
        try:
            answer = await self._calls.prepare(pod.uid, name)
        except AdmissionError as error:
            raise self._not_prepared(pod, error) from error
        self._tell_unapplied(pod, name, answer.edits)
        return Placement(
            cpus=answer.cpus,
            exclusive_cpus=answer.exclusive_cpus,
            mems=answer.mems,
            environment=dict(answer.edits.envs),
            hugepages=limits_of(answer.allocation.memory),
        )

    async def _add(self, pod: AgentPod, name: str, container_id: str) -> None:
        try:
            await self._calls.add_container(pod.uid, name, container_id)
        except AdmissionError as error:
            raise self._not_prepared(pod, error) from error

    def _not_prepared(self, pod: AgentPod, error: AdmissionError) -> Exception:
        code = error.code.name
        if code == "NOT_FOUND":
            # Admission has lost the pod: reconciliation has it judged anew.
            return OperationFailed(f"not admitted: {error.message}", ADMISSION_RETRY_SECONDS)
        if trouble_of(code, ()) is Trouble.SERVICE:
            # Away, or with a full disk: each try makes a container and takes it away again.
            backoff = self._backoffs.setdefault(
                pod.uid, Backoff(ADMISSION_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
            )
            return OperationFailed(f"Admission: {error.message}", backoff.failed())
        return self._failed(pod, "CreateContainerError", error.message)

    def _failed(self, pod: AgentPod, reason: str, message: str) -> NotStarted:
        self._cache.event(pod, EventType.WARNING, "Failed", f"Error: {message}")
        return NotStarted(Waiting(reason, message))

    def _tell_unapplied(self, pod: AgentPod, name: str, edits: pb.ContainerEdits) -> None:
        """Say what a device plugin wants of a container and no process of the node can have."""
        unapplied = not_applied(edits)
        if unapplied:
            text = f"container {name}: not applied: {', '.join(unapplied)}"
            self._cache.event(pod, EventType.WARNING, "DeviceEditsNotApplied", text)


def not_applied(edits: pb.ContainerEdits) -> list[str]:
    """The edits that a process does not see by itself: it has the node's own paths."""
    return [
        *(f"mount {m.container_path}" for m in edits.mounts if m.container_path != m.host_path),
        *(
            f"device node {node.container_path}"
            for node in edits.device_nodes
            if node.container_path != node.host_path
        ),
        *(f"CDI device {device}" for device in edits.cdi_devices),
    ]
