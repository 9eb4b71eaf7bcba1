"""Placement by the affinity of processes, where no cgroups can be written.

CPUs only: a process that is bound to NUMA nodes for its memory has to bind itself, so `mems`
is not enforced, which is said once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from numalign.model.cpu_set import CpuSet
from numalign.telemetry.logs import get_logger
from numalign_agent.pod import AgentPod
from numalign_agent.runners.placer import CannotPlace, Place
from numalign_agent.runners.port import Placement

_log = get_logger("placer")


class AffinityPlacer:
    """Binds processes to CPUs, together with the processes that they started meanwhile."""

    def __init__(self) -> None:
        self._told_of_mems = False

    def place(
        self,
        pod: AgentPod,  # noqa: ARG002 - the port's argument
        container: str,  # noqa: ARG002 - the port's argument
        container_id: str,  # noqa: ARG002 - the port's argument
        placement: Placement,
    ) -> Place:
        """The CPUs that a new process binds itself to."""
        if placement.mems and not self._told_of_mems:
            self._told_of_mems = True
            _log.warning("memory nodes are not enforced without cgroups", mems=placement.mems)
        return Place(cpus=cpus_of(placement))

    def update(self, container_id: str, pid: int, placement: Placement) -> None:
        """Bind a running container anew."""
        cpus = cpus_of(placement)
        if cpus is None:
            return
        for thread in _threads_below(pid):
            _bind(container_id, thread, placement.cpus, cpus)

    def put_back(self, container_id: str, pid: int, placement: Placement) -> str:
        """Bind those anew that may run elsewhere; a process may keep itself to fewer CPUs."""
        cpus = cpus_of(placement)
        if cpus is None:
            return ""
        found = ""
        for thread in _threads_below(pid):
            try:
                allowed = os.sched_getaffinity(thread)
            except ProcessLookupError:
                continue
            if not allowed <= cpus:
                found = found or f"process {thread} may run on CPUs {CpuSet.of(allowed)}"
                _bind(container_id, thread, placement.cpus, cpus)
        return found

    def kill(self, container_id: str) -> bool:  # noqa: ARG002 - the port's argument
        """Nothing but the process group is known here."""
        return False

    def remove(self, container_id: str) -> None:
        """Nothing was made."""


def _bind(container_id: str, thread: int, text: str, cpus: frozenset[int]) -> None:
    try:
        os.sched_setaffinity(thread, cpus)
    except ProcessLookupError:
        # It ended meanwhile.
        return
    except OSError as error:
        raise CannotPlace(f"container {container_id}: CPUs {text}: {error.strerror}") from error


def cpus_of(placement: Placement) -> frozenset[int] | None:
    """The CPUs of a placement; None: leave them alone."""
    if not placement.cpus:
        return None
    return frozenset(CpuSet.parse(placement.cpus))


def _threads_below(pid: int) -> Iterator[int]:
    """Every thread of a process and of its descendants."""
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        for task in _entries(Path(f"/proc/{process}/task")):
            yield int(task.name)
            waiting += map(int, _text(task / "children").split())


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        # It ended meanwhile.
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        # It ended meanwhile, or the kernel does not list children.
        return ""
