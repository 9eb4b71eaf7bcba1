"""Between the runtime's messages and the values that are kept and decided on here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.model.cpu_set import NO_CPUS, CpuSet, CpuSetSyntaxError
from numalign_agent.nri.known import Sandbox, SeenContainer
from numalign_agent.nri.plan.estimate import CgroupSettings
from numalign_agent.nri.plan.pinning import Pinning
from numalign_agent.nri.plan.updates import NO_QUOTA, Update

_GONE = (nri.CONTAINER_STOPPED, nri.CONTAINER_UNKNOWN)


def sandbox_of(message: nri.PodSandbox) -> Sandbox:
    """A sandbox."""
    return Sandbox(
        id=message.id,
        pod_uid=message.uid,
        name=message.name,
        namespace=message.namespace,
        labels=dict(message.labels),
        annotations=dict(message.annotations),
        pid=message.pid,
    )


StartedAt = Callable[[int], int]
"""When the process of a pid was started, in nanoseconds; 0 if that cannot be seen."""


def container_of(
    message: nri.Container, sandbox: nri.PodSandbox, started_at: StartedAt | None = None
) -> SeenContainer:
    """A container of a sandbox. `started_at` stands in for a runtime that tells no age."""
    resources = message.linux.resources
    cpu = resources.cpu
    quota = cpu.quota.value
    return SeenContainer(
        id=message.id,
        name=message.name,
        sandbox_id=message.pod_sandbox_id,
        set_to=Pinning(_listed(cpu.cpus), _listed(cpu.mems), exclusive=quota == NO_QUOTA),
        settings=CgroupSettings(
            parent=sandbox.linux.cgroup_parent,
            quota=max(quota, 0),
            period=cpu.period.value,
            shares=cpu.shares.value,
            memory=max(resources.memory.limit.value, 0),
            hugepages=tuple((limit.page_size, limit.limit) for limit in resources.hugepage_limits),
        ),
        cgroups_path=message.linux.cgroups_path,
        created_at=message.created_at or (started_at(message.pid) if started_at else 0),
    )


def containers_of(
    messages: Iterable[nri.Container],
    sandboxes: Iterable[nri.PodSandbox],
    started_at: StartedAt | None = None,
) -> list[SeenContainer]:
    """The containers that have not ended and whose sandbox is told."""
    by_id = {sandbox.id: sandbox for sandbox in sandboxes}
    return [
        container_of(message, by_id[message.pod_sandbox_id], started_at)
        for message in messages
        if message.state not in _GONE and message.pod_sandbox_id in by_id
    ]


def update_message(update: Update) -> nri.ContainerUpdate:
    """A change of one container. That it fails is no failure of what brought it along."""
    message = nri.ContainerUpdate(container_id=update.container_id, ignore_failure=True)
    set_place(message.linux.resources.cpu, update.pinning, update.quota)
    return message


def set_place(cpu: nri.LinuxCPU, pinning: Pinning, quota: int | None) -> None:
    """Write a place, and a CFS quota in microseconds unless it is to be left alone."""
    cpu.cpus = str(pinning.cpus)
    cpu.mems = str(pinning.mems)
    if quota is not None:
        cpu.quota.value = quota


def _listed(text: str) -> CpuSet:
    """A list as a set. What the kernel would not take either counts as not set."""
    try:
        return CpuSet.parse(text)
    except CpuSetSyntaxError:
        return NO_CPUS
