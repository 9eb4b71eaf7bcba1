"""A directory that behaves as cgroup version 2 does, as far as the enforcer can tell.

CPUs that do not exist are taken; only what is effective leaves them out.
"""

from __future__ import annotations

import errno
from pathlib import Path, PurePosixPath

from numalign.model.cpu_set import CpuSet
from numalign_agent.cgroups.errors import CgroupError, not_written
from numalign_agent.cgroups.tree import CgroupTree

TOP = PurePosixPath("/")
CPUS, MEMS = "0-7", "0-1"

_SETS = {"cpuset.cpus": "cpuset.cpus.effective", "cpuset.mems": "cpuset.mems.effective"}


class FakeTree(CgroupTree):
    """`refused` are errnos by file name; `written` every write in order."""

    def __init__(self, root: Path, controllers: str = "cpuset cpu memory hugetlb") -> None:
        super().__init__(root)
        self.refused: dict[str, int] = {}
        self.written: list[tuple[str, str, str]] = []
        self._put(TOP, "cgroup.controllers", controllers)
        self._put(TOP, "cgroup.subtree_control", "")
        self._put(TOP, "cpuset.cpus.effective", CPUS)
        self._put(TOP, "cpuset.mems.effective", MEMS)

    def make(self, group: PurePosixPath) -> bool:
        if self.has(group):
            return False
        super().make(group)
        self._put(group, "cgroup.subtree_control", "")
        self._put(group, "cgroup.procs", "")
        self._put(group, "cgroup.events", "populated 0\nfrozen 0")
        self._enable(group)
        return True

    def write(self, group: PurePosixPath, file: str, value: str) -> None:
        path = self.path(group, file)
        number = self.refused.get(file) or (0 if path.exists() else errno.ENOENT)
        if number:
            raise CgroupError(not_written(str(path), value, number, writable=True))
        self.written.append((str(group), file, value))
        if file == "cgroup.subtree_control":
            now = set(self.read(group, file).split()) | {v.removeprefix("+") for v in value.split()}
            self._put(group, file, " ".join(sorted(now)))
            for child in self.path(group).iterdir():
                if child.is_dir():
                    self._enable(group / child.name)
            return
        self._put(group, file, value.strip())
        if file in _SETS:
            above = CpuSet.parse(self.read(group.parent, _SETS[file]))
            own = CpuSet.parse(value.strip())
            self._put(group, _SETS[file], str(CpuSet(own.bits & above.bits) if own else above))

    def remove(self, group: PurePosixPath) -> None:
        for path in self.path(group).iterdir() if self.has(group) else ():
            path.unlink()
        super().remove(group)

    def _enable(self, group: PurePosixPath) -> None:
        handed_on = self.read(group.parent, "cgroup.subtree_control")
        self._put(group, "cgroup.controllers", handed_on)
        if "cpuset" in handed_on.split():
            for file, effective in _SETS.items():
                self._put(group, file, "")
                self._put(group, effective, self.read(group.parent, effective))
            self._put(group, "cpuset.cpus.partition", "member")
        if "hugetlb" in handed_on.split():
            for size in ("2MB", "1GB"):
                self._put(group, f"hugetlb.{size}.max", "max")
                self._put(group, f"hugetlb.{size}.rsvd.max", "max")
        if "cpu" in handed_on.split():
            self._put(group, "cpu.max", "max 100000")

    def _put(self, group: PurePosixPath, file: str, value: str) -> None:
        self.path(group, file).write_text(f"{value}\n")
