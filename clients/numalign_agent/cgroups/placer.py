"""Placement by control groups: one for each container, with its CPUs, memory and huge pages."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from numalign.model.cpu_set import CpuSet
from numalign_agent.cgroups.enforcer import CgroupEnforcer
from numalign_agent.cgroups.errors import CgroupError
from numalign_agent.cgroups.plan import Partition, WantedGroup
from numalign_agent.cgroups.settings import CgroupSettings
from numalign_agent.cgroups.tree import CgroupTree
from numalign_agent.pod import AgentPod
from numalign_agent.runners.placer import CannotPlace, Place
from numalign_agent.runners.port import Placement

_CONTROLLERS_NEEDED = WantedGroup(cpus=CpuSet(1))


class CgroupPlacer:
    """See ContainerPlacer. The group of a container is named by its id, below one parent."""

    def __init__(self, settings: CgroupSettings, tree: CgroupTree | None = None) -> None:
        self._tree = CgroupTree(settings.root) if tree is None else tree
        self._enforcer = CgroupEnforcer(self._tree)
        self._parent = settings.parent
        self._partition = settings.partition

    def check(self) -> None:
        """Make the parent, with the controllers it hands on. Raises CannotPlace with the reason."""
        try:
            self._enforcer.prepare(self._parent, _CONTROLLERS_NEEDED)
        except CgroupError as error:
            raise CannotPlace(str(error)) from error

    def group(self, container_id: str) -> PurePosixPath:
        """The group of a container."""
        return self._parent / container_id

    def place(
        self,
        pod: AgentPod,  # noqa: ARG002 - the port's argument
        container: str,
        container_id: str,
        placement: Placement,
    ) -> Place:
        """Make the group of a container that is about to start."""
        self._apply(container, container_id, placement)
        return Place(cgroup_procs=(self._tree.processes(self.group(container_id)),))

    def update(self, container_id: str, pid: int, placement: Placement) -> None:  # noqa: ARG002
        """Set the group of a running container anew: all its processes follow."""
        self._apply(container_id, container_id, placement)

    def put_back(self, container_id: str, pid: int, placement: Placement) -> str:
        """Set the group anew where it is not as it was set, and fetch the first process back."""
        if not Path(f"/proc/{pid}").exists():
            # It has ended, and its group goes with it.
            return ""
        group = self.group(container_id)
        wanted = wanted_group(placement, self._partition)
        try:
            wrong = self._enforcer.strayed(group, wanted)
            if wrong:
                self._enforcer.apply(group, wanted)
            if self._tree.fetch(group, pid):
                wrong += (f"process {pid} was in another group",)
        except CgroupError as error:
            raise CannotPlace(f"container {container_id}: {error}") from error
        return "; ".join(wrong)

    def kill(self, container_id: str) -> bool:
        """Kill whatever is left in the group."""
        try:
            return self._tree.has(self.group(container_id)) and self._tree.kill(
                self.group(container_id)
            )
        except CgroupError as error:
            raise CannotPlace(f"container {container_id}: {error}") from error

    def remove(self, container_id: str) -> None:
        """Remove the group; what is left in it is killed."""
        try:
            self.kill(container_id)
            self._enforcer.remove(self.group(container_id))
        except CgroupError as error:
            raise CannotPlace(f"container {container_id}: {error}") from error

    def _apply(self, container: str, container_id: str, placement: Placement) -> None:
        try:
            self._enforcer.apply(self.group(container_id), wanted_group(placement, self._partition))
        except CgroupError as error:
            raise CannotPlace(f"container {container}: {error}") from error


def wanted_group(placement: Placement, partition: Partition) -> WantedGroup:
    """How the group of a container is to be. Only exclusive CPUs make a partition."""
    return WantedGroup(
        cpus=CpuSet.parse(placement.cpus),
        mems=CpuSet.parse(placement.mems),
        partition=partition if placement.exclusive_cpus else Partition.MEMBER,
        hugepages=placement.hugepages,
        unlimited_cpu=placement.exclusive_cpus,
    )
