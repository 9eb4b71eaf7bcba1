"""What the kernel lets a container use: read from its cgroup, version 1 or 2.

A container runtime answers with what it was told; only the kernel knows what came of it.
"""

from __future__ import annotations

import re
from pathlib import Path

from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError
from numalign_agent.nri.plan.drift import Actual

_SYSTEMD = re.compile(r"(?P<slice>[^:/]+\.slice):(?P<prefix>[^:/]*):(?P<name>[^:/]+)\Z")

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


def relative_path(cgroups_path: str) -> str:
    """A cgroup below the root, from what a runtime writes: a path, or `slice:prefix:name`.

    systemd puts slices into each other by the dashes of their names.
    """
    found = _SYSTEMD.match(cgroups_path)
    if found is None:
        return cgroups_path.strip("/")
    parts, so_far = [], ""
    for piece in found["slice"].removesuffix(".slice").split("-"):
        so_far = f"{so_far}-{piece}" if so_far else piece
        parts.append(f"{so_far}.slice")
    unit = f"{found['prefix']}-{found['name']}" if found["prefix"] else found["name"]
    return "/".join((*parts, f"{unit}.scope"))


def _read(path: Path) -> CpuSet | None:
    try:
        return CpuSet.parse(path.read_text(encoding="ascii").strip())
    except (OSError, CpuSetSyntaxError):
        return None
