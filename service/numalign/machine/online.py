"""Which CPUs the kernel runs, has switched off, and keeps away from its scheduler."""

from __future__ import annotations

from dataclasses import dataclass

from numalign.errors import ConfigError
from numalign.machine.tree import Tree
from numalign.model.cpu_set import NO_CPUS, CpuSet

CPU_DIRECTORY = "sys/devices/system/cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuStates:
    """CPUs by state. `offline` are present but switched off; `isolated` are online too."""

    online: CpuSet
    offline: CpuSet
    isolated: CpuSet


def cpu_states(tree: Tree) -> CpuStates:
    """The states of all CPUs of the machine.

    A CPU that is merely possible (a hot-plug slot) is not listed. Raises ConfigError where
    no CPU is online.
    """
    present = tree.cpu_list(f"{CPU_DIRECTORY}/present")
    if present is None:
        present = CpuSet.of(tree.numbered(CPU_DIRECTORY, "cpu"))
    online = tree.cpu_list(f"{CPU_DIRECTORY}/online")
    if online is None:
        online = CpuSet.of(cpu for cpu in present if tree.integer(_switch_of(cpu)) != 0)
    if not online:
        raise ConfigError(f"no CPU is online in {tree.path(CPU_DIRECTORY)}")
    isolated = tree.cpu_list(f"{CPU_DIRECTORY}/isolated") or NO_CPUS
    return CpuStates(online=online, offline=present - online, isolated=isolated & online)


def _switch_of(cpu: int) -> str:
    return f"{CPU_DIRECTORY}/cpu{cpu}/online"
