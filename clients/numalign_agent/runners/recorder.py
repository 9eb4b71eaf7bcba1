"""Runs nothing and remembers what it was told (`runner: recorder`): for dry operation and tests.

Its containers run until somebody ends them, and are gone with the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from numalign_agent.containers.spec import container_of
from numalign_agent.pod import AgentPod
from numalign_agent.runners.port import (
    ContainerPhase,
    Placement,
    RunnerFailed,
    RuntimeContainer,
    RuntimePod,
)


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that the recorder was told: `create`, `start`, `stop`, `remove` or `place`."""

    what: str
    container_id: str
    pod_uid: str = ""
    container: str = ""
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class _Recorded:
    pod: AgentPod
    state: RuntimeContainer


class RecorderRunner:
    """See PodRunner. `told` is everything so far, in order."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.told: list[Told] = []
        self._clock = clock
        self._containers: dict[str, _Recorded] = {}
        self._watchers: list[Callable[[str], None]] = []

    async def not_ready(self) -> str | None:
        """Always ready."""
        return None

    def not_given(self, pod: AgentPod) -> Sequence[str]:  # noqa: ARG002 - nothing is run here
        """Nothing is missed where nothing runs."""
        return ()

    def watch(self, changed: Callable[[str], None]) -> None:
        """Hear of containers that `exit` ends."""
        self._watchers.append(changed)

    async def list_pods(self) -> Sequence[RuntimePod]:
        """All pods that have a container."""
        uids = dict.fromkeys(recorded.pod.uid for recorded in self._containers.values())
        return [pod for uid in uids if (pod := await self.get_pod(uid)) is not None]

    async def get_pod(self, pod_uid: str) -> RuntimePod | None:
        """One pod."""
        recorded = [r for r in self._containers.values() if r.pod.uid == pod_uid]
        if not recorded:
            return None
        pod = recorded[0].pod
        states = tuple(r.state for r in recorded)
        return RuntimePod(uid=pod.uid, name=pod.name, namespace=pod.namespace, containers=states)

    async def create_container(
        self, pod: AgentPod, container: str, attempt: int, placement: Placement
    ) -> str:
        """Remember it."""
        container_id = f"recorded-{len(self.told)}"
        self.told.append(Told("create", container_id, pod.uid, container, placement))
        self._containers[container_id] = _Recorded(
            pod,
            RuntimeContainer(
                id=container_id,
                name=container,
                phase=ContainerPhase.CREATED,
                attempt=attempt,
                spec_hash=container_of(pod, container).hash,
            ),
        )
        return container_id

    async def start_container(self, container_id: str) -> None:
        """It runs from now on."""
        self._tell("start", container_id)
        self._change(container_id, phase=ContainerPhase.RUNNING, started_at=self._clock())

    async def stop_container(self, container_id: str, grace_seconds: float) -> None:  # noqa: ARG002 - nothing takes time here
        """It ends at once, as if by SIGTERM."""
        recorded = self._containers.get(container_id)
        if recorded is not None and recorded.state.phase is ContainerPhase.RUNNING:
            self._tell("stop", container_id)
            self.exit(container_id, 143)

    async def remove_container(self, container_id: str) -> None:
        """Forget it."""
        if container_id in self._containers:
            self._tell("remove", container_id)
            del self._containers[container_id]

    async def update_placement(self, container_id: str, placement: Placement) -> None:
        """Remember where it was put."""
        recorded = self._known(container_id)
        self.told.append(
            Told("place", container_id, recorded.pod.uid, recorded.state.name, placement)
        )

    async def put_back(self, container_id: str, placement: Placement) -> str:  # noqa: ARG002 - the port's
        """Nobody can change what is only remembered."""
        return ""

    async def close(self) -> None:
        """Nothing is held."""

    def exit(self, container_id: str, code: int) -> None:
        """Let a container end by itself."""
        self._change(
            container_id,
            phase=ContainerPhase.EXITED,
            exit_code=code,
            reason="Error" if code else "Completed",
            finished_at=self._clock(),
        )

    def _tell(self, what: str, container_id: str) -> None:
        recorded = self._known(container_id)
        self.told.append(Told(what, container_id, recorded.pod.uid, recorded.state.name))

    def _known(self, container_id: str) -> _Recorded:
        try:
            return self._containers[container_id]
        except KeyError:
            raise RunnerFailed(f"no container {container_id}") from None

    def _change(self, container_id: str, **fields: object) -> None:
        recorded = self._known(container_id)
        state = replace(recorded.state, **fields)  # type: ignore[arg-type]
        self._containers[container_id] = _Recorded(recorded.pod, state)
        for changed in self._watchers:
            changed(recorded.pod.uid)
