"""What the sync loop asks of whatever runs containers.

Separate from every runner, so that the loop is the same over child processes, a container
runtime or a recorder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from numalign_agent.pod import AgentPod


class ContainerPhase(StrEnum):
    """Where a container is in its life."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RuntimeContainer:
    """A container as the runtime lists it. Times are seconds since the epoch; 0: not yet.

    `spec_hash` is the hash of what it was made from (`ContainerSpec.hash`). One that ended
    because the machine went down was of an `earlier_boot`.
    """

    id: str
    name: str
    phase: ContainerPhase
    attempt: int = 0
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    started_at: float = 0.0
    finished_at: float = 0.0
    spec_hash: str = ""
    earlier_boot: bool = False


@dataclass(frozen=True, slots=True)
class RuntimePod:
    """A pod as the runtime lists it, with dead containers until they are removed."""

    uid: str
    name: str
    namespace: str
    containers: tuple[RuntimeContainer, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """What Admission granted a container; empty texts leave things alone.

    `hugepages` are bytes by page size as cgroups name it, such as `2MB`; None: not limited.
    """

    cpus: str = ""
    exclusive_cpus: bool = False
    mems: str = ""
    environment: Mapping[str, str] | None = None
    hugepages: Mapping[str, int] | None = None


class RunnerFailed(Exception):
    """A container could not be started, stopped or listed; the text says why."""


class ContainerRefused(RunnerFailed):
    """The container asks for something that this runner never gives; the text names the field."""


class PodRunner(Protocol):
    """Starts, ends and lists containers. Every call may raise RunnerFailed."""

    async def not_ready(self) -> str | None:
        """Why no container can be started at present; None when all is well (LOOP-7)."""

    def not_given(self, pod: AgentPod) -> Sequence[str]:
        """Paths of what the pod asks for and does not get here; it runs without these."""

    def watch(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a pod's UID whenever a container of it starts or ends by itself."""

    async def list_pods(self) -> Sequence[RuntimePod]:
        """All pods that have a container, dead or alive."""

    async def get_pod(self, pod_uid: str) -> RuntimePod | None:
        """One pod as it is now; None if it has no container."""

    async def create_container(
        self, pod: AgentPod, container: str, attempt: int, placement: Placement
    ) -> str:
        """Make one container of the pod, without starting it; its id."""

    async def start_container(self, container_id: str) -> None:
        """Start a container that was made."""

    async def stop_container(self, container_id: str, grace_seconds: float) -> None:
        """End a container: politely first, by force when grace is over. Not running: fine."""

    async def remove_container(self, container_id: str) -> None:
        """Forget a dead container. Unknown: fine."""

    async def update_placement(self, container_id: str, placement: Placement) -> None:
        """Apply another placement to a container that runs."""

    async def put_back(self, container_id: str, placement: Placement) -> str:
        """Put a container that runs back where it belongs if somebody has changed that.

        What was wrong, empty: nothing.
        """

    async def close(self) -> None:
        """Give back what the runner itself holds; containers go on running."""
