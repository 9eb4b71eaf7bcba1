"""How a process is put on the CPUs and NUMA nodes that were granted to its container.

Separate from the runner, because what can be enforced depends on the node: cgroups where the
agent may write them, else the affinity of processes. `place`, `update` and `put_back` may block
shortly; the runner calls them off its event loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from numalign_agent.pod import AgentPod
from numalign_agent.runners.port import Placement


class CannotPlace(Exception):
    """A placement could not be applied; the text names what, and why."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new process puts itself before it executes its command.

    `cgroup_procs` are files that it writes its process id to, in order; `cpus` is the set of
    CPUs that it binds itself to, None: as it is.
    """

    cgroup_procs: tuple[Path, ...] = ()
    cpus: frozenset[int] | None = None


class ContainerPlacer(Protocol):
    """Applies placements to the processes of containers. Every method may raise CannotPlace."""

    def place(
        self, pod: AgentPod, container: str, container_id: str, placement: Placement
    ) -> Place:
        """Make room for a container that is about to start."""

    def update(self, container_id: str, pid: int, placement: Placement) -> None:
        """Apply another placement to a container that runs; `pid` is its first process."""

    def put_back(self, container_id: str, pid: int, placement: Placement) -> str:
        """Look whether a running container is where it was put, and put it back where it is not.

        What was wrong, empty: nothing.
        """

    def kill(self, container_id: str) -> bool:
        """Kill whatever is left of a container; False where that cannot be done here."""

    def remove(self, container_id: str) -> None:
        """Give back what `place` made. Unknown: fine."""
