"""What the kernel lets a container use: read from its cgroup, version 1 or 2.

A container runtime answers with what it was told; only the kernel knows what came of it.
"""

from __future__ import annotations

from pathlib import Path

from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError
from numalign_agent.cgroups.paths import relative_path
from numalign_agent.nri.plan.drift import Actual

# Of version 2 the effective files: what is asked for there may be more than there is.
_FILES = (
    ("cpuset.cpus.effective", "cpuset.mems.effective"),
    ("cpuset.effective_cpus", "cpuset.effective_mems"),
)


class CgroupReadback:
    """Reads below a mounted cgroup file system, such as `/sys/fs/cgroup`."""

    def __init__(self, root: Path) -> None:
        self._roots = (root, root / "cpuset")

    def read(self, cgroups_path: str) -> Actual | None:
        """What a container may use, by its cgroup as the runtime writes it.

        None where it has no cgroup (yet, or any more), or the files cannot be read here.
        """
        relative = relative_path(cgroups_path)
        if not relative:
            return None
        for root in self._roots:
            for cpus, mems in _FILES:
                directory = root / relative
                found = _read(directory / cpus), _read(directory / mems)
                if found[0] is not None and found[1] is not None:
                    return Actual(found[0], found[1])
        return None

    def can_read(self) -> bool:
        """Whether there is a cgroup file system with cpusets at all."""
        names = {name for pair in _FILES for name in pair} | {"cgroup.controllers"}
        return any((root / name).exists() for root in self._roots for name in names)


def _read(path: Path) -> CpuSet | None:
    try:
        return CpuSet.parse(path.read_text(encoding="ascii").strip())
    except (OSError, CpuSetSyntaxError):
        return None
