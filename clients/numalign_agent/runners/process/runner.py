"""Runs containers as child processes of this node (`runner: process`).

Containers outlive the agent: each has a shim of its own and a directory on disk, and a new
agent finds both again. What a container asks for that a process cannot have is refused or told
(`containers.environment`, `containers.unsupported`).
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from numalign.store.carried import carried_through
from numalign_agent.containers.environment import CannotProvide, ProcessSpec, process_spec
from numalign_agent.containers.spec import container_of
from numalign_agent.containers.unsupported import not_given
from numalign_agent.pod import AgentPod
from numalign_agent.runners.placer import CannotPlace, ContainerPlacer, Place
from numalign_agent.runners.port import (
    ContainerPhase,
    ContainerRefused,
    Placement,
    RunnerFailed,
    RuntimePod,
)
from numalign_agent.runners.process.directory import (
    ContainerDirectory,
    Made,
    directories_in,
)
from numalign_agent.runners.process.launcher import Launcher
from numalign_agent.runners.process.logs import PodLogs
from numalign_agent.runners.process.proc import boot_id, send
from numalign_agent.runners.process.tracked import TrackedContainer

_GONE_AFTER_KILL_SECONDS = 10.0


class ProcessRunner:
    """See PodRunner. Open it with `open`, which finds the containers that are there."""

    def __init__(self, root: Path, logs: Path, placer: ContainerPlacer | None, boot: str) -> None:
        self._root = root
        self._logs = PodLogs(logs)
        self._placer = placer
        self._boot = boot
        self._launcher = Launcher()
        self._containers: dict[str, TrackedContainer] = {}
        self._watchers: list[Callable[[str], None]] = []

    @classmethod
    async def open(
        cls, root: Path, logs: Path, placer: ContainerPlacer | None = None
    ) -> ProcessRunner:
        """A runner over the containers in `root`, which is made if missing.

        `logs` is for their output. Raises RunnerFailed where a directory cannot be used.
        """
        runner = cls(root, logs, placer, boot_id())
        for directory in _found(root, logs):
            await runner._adopt(directory)
        return runner

    async def not_ready(self) -> str | None:
        """Why no container can be started at present."""
        if not self._root.is_dir():
            return f"container directory {self._root} is gone"
        return None

    def not_given(self, pod: AgentPod) -> Sequence[str]:
        """What no process of the node has."""
        return not_given(pod)

    def watch(self, changed: Callable[[str], None]) -> None:
        """Hear of containers that end by themselves."""
        self._watchers.append(changed)

    async def list_pods(self) -> Sequence[RuntimePod]:
        """All pods that have a container."""
        uids = dict.fromkeys(tracked.made.pod_uid for tracked in self._containers.values())
        return [pod for uid in uids if (pod := self._pod(uid)) is not None]

    async def get_pod(self, pod_uid: str) -> RuntimePod | None:
        """One pod."""
        return self._pod(pod_uid)

    async def create_container(
        self, pod: AgentPod, container: str, attempt: int, placement: Placement
    ) -> str:
        """Write down what is to be executed."""
        spec = container_of(pod, container)
        try:
            process = process_spec(pod, spec, placement.environment or {})
        except CannotProvide as error:
            raise ContainerRefused(str(error)) from error
        made = Made(
            pod_uid=pod.uid,
            pod_name=pod.name,
            namespace=pod.namespace,
            container=container,
            attempt=attempt,
            spec_hash=spec.hash,
            boot=self._boot,
            at=time.time(),
        )
        container_id = uuid.uuid4().hex
        place = await self._place(pod, container, container_id, placement)
        try:
            directory = self._write_down(container_id, made, process, place)
        except RunnerFailed:
            with contextlib.suppress(RunnerFailed):
                await self._give_back(container_id)
            raise
        self._track(directory, made)
        return container_id

    async def start_container(self, container_id: str) -> None:
        """Start it. Raises RunnerFailed, with the reason, for one that could not be executed."""
        tracked = self._known(container_id)
        try:
            await carried_through(self._launcher.launch(tracked.directory.path))
        finally:
            # Without word from its shim it may have started all the same.
            tracked.look()
        self._tell(tracked.made.pod_uid)
        if tracked.state.reason == "StartError":
            raise RunnerFailed(tracked.state.message)

    async def stop_container(self, container_id: str, grace_seconds: float) -> None:
        """End it: SIGTERM to its first process, SIGKILL to the whole of it after the grace."""
        tracked = self._containers.get(container_id)
        if tracked is None or tracked.state.phase is not ContainerPhase.RUNNING:
            return
        if tracked.process is not None:
            send(tracked.process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await tracked.ended.wait()
        if tracked.process is not None:
            send(tracked.process, signal.SIGKILL)
        await self._kill_rest(container_id)
        try:
            async with asyncio.timeout(_GONE_AFTER_KILL_SECONDS):
                await tracked.ended.wait()
        except TimeoutError:
            raise RunnerFailed(f"container {container_id} did not end when it was killed") from None

    async def remove_container(self, container_id: str) -> None:
        """Forget a container that does not run. Raises RunnerFailed for one that does."""
        tracked = self._containers.get(container_id)
        if tracked is None:
            return
        if tracked.state.phase is ContainerPhase.CREATED:
            if not tracked.directory.give_up("removed before it was started"):
                # A shim that came late: whoever asked for it has ended since.
                await self._look_when_under_way(tracked)
                raise RunnerFailed(f"container {container_id} was started after all")
        elif tracked.state.phase is not ContainerPhase.EXITED:
            raise RunnerFailed(f"container {container_id} runs")
        await self._give_back(container_id)
        tracked.directory.remove()
        del self._containers[container_id]
        await tracked.close()
        self._logs.remove(tracked.made)
        self._tell(tracked.made.pod_uid)

    async def update_placement(self, container_id: str, placement: Placement) -> None:
        """Put a running container elsewhere. One that has ended is passed over."""
        tracked = self._known(container_id)
        pid = tracked.pid
        if pid is None or self._placer is None:
            return
        try:
            await asyncio.to_thread(self._placer.update, container_id, pid, placement)
        except CannotPlace as error:
            raise RunnerFailed(str(error)) from error

    async def put_back(self, container_id: str, placement: Placement) -> str:
        """Put it back where it belongs. One that has ended is passed over."""
        tracked = self._containers.get(container_id)
        pid = None if tracked is None else tracked.pid
        if tracked is None or pid is None or self._placer is None:
            return ""
        try:
            return await asyncio.to_thread(self._placer.put_back, container_id, pid, placement)
        except CannotPlace as error:
            if tracked.pid is None:
                return ""
            raise RunnerFailed(str(error)) from error

    async def close(self) -> None:
        """Let go of all containers; they go on."""
        await self._launcher.close()
        for tracked in self._containers.values():
            await tracked.close()

    async def _adopt(self, directory: ContainerDirectory) -> None:
        tracked = self._track(directory, directory.made())
        await self._look_when_under_way(tracked)

    async def _look_when_under_way(self, tracked: TrackedContainer) -> None:
        """Read what is on disk of a container, after the first steps of its shim, if it has one."""
        while _is_getting_under_way(tracked.directory):  # noqa: ASYNC110 - its shim's file says it
            await asyncio.sleep(0.01)
        tracked.look()

    async def _place(
        self, pod: AgentPod, container: str, container_id: str, placement: Placement
    ) -> Place:
        if self._placer is None:
            return Place()
        try:
            return await asyncio.to_thread(
                self._placer.place, pod, container, container_id, placement
            )
        except CannotPlace as error:
            raise RunnerFailed(str(error)) from error

    async def _kill_rest(self, container_id: str) -> None:
        if self._placer is None:
            return
        try:
            await asyncio.to_thread(self._placer.kill, container_id)
        except CannotPlace as error:
            raise RunnerFailed(str(error)) from error

    async def _give_back(self, container_id: str) -> None:
        if self._placer is None:
            return
        try:
            await asyncio.to_thread(self._placer.remove, container_id)
        except CannotPlace as error:
            raise RunnerFailed(str(error)) from error

    def _write_down(
        self, container_id: str, made: Made, process: ProcessSpec, place: Place
    ) -> ContainerDirectory:
        try:
            out, err = self._logs.make(made)
        except OSError as error:
            raise RunnerFailed(f"{error.filename}: {error.strerror}") from error
        document = {
            "argv": process.argv,
            "environment": dict(process.environment),
            "directory": process.directory,
            "stdout": str(out),
            "stderr": str(err),
            "cpus": None if place.cpus is None else sorted(place.cpus),
            "cgroup_procs": [str(path) for path in place.cgroup_procs],
        }
        return ContainerDirectory.make(self._root / container_id, made, document)

    def _track(self, directory: ContainerDirectory, made: Made) -> TrackedContainer:
        tracked = TrackedContainer(directory, made, self._boot, self._tell)
        self._containers[directory.id] = tracked
        return tracked

    def _known(self, container_id: str) -> TrackedContainer:
        try:
            return self._containers[container_id]
        except KeyError:
            raise RunnerFailed(f"no container {container_id}") from None

    def _pod(self, pod_uid: str) -> RuntimePod | None:
        tracked = [t for t in self._containers.values() if t.made.pod_uid == pod_uid]
        if not tracked:
            return None
        made = tracked[0].made
        return RuntimePod(
            uid=pod_uid,
            name=made.pod_name,
            namespace=made.namespace,
            containers=tuple(t.state for t in tracked),
        )

    def _tell(self, pod_uid: str) -> None:
        for changed in self._watchers:
            changed(pod_uid)


def _is_getting_under_way(directory: ContainerDirectory) -> bool:
    """Whether a shim is at its first steps, which the agent before this one asked it for."""
    return directory.running() is None and directory.exited() is None and directory.has_shim()


def _found(root: Path, logs: Path) -> list[ContainerDirectory]:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        logs.mkdir(mode=0o750, parents=True, exist_ok=True)
        return directories_in(root)
    except OSError as error:
        raise RunnerFailed(f"{error.filename}: {error.strerror}") from error
