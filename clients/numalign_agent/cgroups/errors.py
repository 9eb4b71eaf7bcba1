"""Why a control group cannot be set as it should be, in words that name the file and the value.

The kernel gives a number; what it means depends on the file that was written. Pure.
"""

from __future__ import annotations

import errno

CONTROLLERS = "cgroup.controllers"
DELEGATED = "cgroup.subtree_control"
PROCESSES = "cgroup.procs"
CPUS, MEMS = "cpuset.cpus", "cpuset.mems"
CPUS_EFFECTIVE, MEMS_EFFECTIVE = "cpuset.cpus.effective", "cpuset.mems.effective"
PARTITION = "cpuset.cpus.partition"
CPU_MAX = "cpu.max"


class CgroupError(Exception):
    """A control group could not be read or set; the text names the file and the value."""


class NoCgroups(CgroupError):
    """There are no control groups here that can be used at all; the text says what is missing."""


_MEANINGS = {
    (errno.EBUSY, DELEGATED): "it has processes of its own, and only a group without any can hand "
    "on controllers; move them into a group below it",
    (errno.ENOENT, DELEGATED): "the controller is not available here",
    (errno.EINVAL, DELEGATED): "the controller is not available here",
    (errno.EINVAL, CPUS): "not a list of CPUs, or they belong exclusively to another group",
    (errno.EINVAL, MEMS): "not a list of NUMA nodes, or none of them has memory",
    (errno.ERANGE, CPUS): "a number is beyond what the kernel knows",
    (errno.ERANGE, MEMS): "a number is beyond what the kernel knows",
    (errno.EACCES, CPUS): "they are not among those of the group above",
    (errno.EACCES, MEMS): "they are not among those of the group above",
    (errno.EBUSY, CPUS): "processes of the group, or a group below it, still need what is taken",
    (errno.EBUSY, MEMS): "processes of the group, or a group below it, still need what is taken",
    (errno.ENOSPC, CPUS): "the group has processes and would be left without CPUs",
    (errno.ENOSPC, MEMS): "the group has processes and would be left without memory",
    (errno.ENOSPC, PROCESSES): "the group has no CPUs or no memory nodes yet",
    (errno.EBUSY, PROCESSES): "the group hands on controllers, so processes belong below it",
    (errno.EOPNOTSUPP, PROCESSES): "the group is in an invalid state for processes",
    (errno.EINVAL, PARTITION): "the kernel knows no such kind of partition",
}

_IN_GENERAL = {
    errno.EACCES: "not allowed to write here; it needs root, or a delegated group",
    errno.EPERM: "not allowed to write here; it needs root, or a delegated group",
    errno.EROFS: "the cgroup file system is mounted read-only",
    errno.ENOENT: "no such file: the group is gone, or the controller is not enabled in it",
    errno.ENOSPC: "the kernel has no room for it",
    errno.EBUSY: "it is in use",
    errno.EINVAL: "the kernel does not take this value",
}


def not_written(path: str, value: str, number: int, *, writable: bool) -> str:
    """The text for a write of `value` to the file at `path` that failed with an errno.

    `writable` is whether the file as such may be written: only then EACCES is about the value.
    """
    name = path.rpartition("/")[2]
    meaning = _MEANINGS.get((number, name)) if writable or number != errno.EACCES else None
    reason = meaning or _IN_GENERAL.get(number) or "the kernel refuses it"
    return f'{path}: "{value}" was refused ({_symbol(number)}): {reason}'


def not_done(path: str, doing: str, number: int) -> str:
    """The text for something else that failed, such as making a group."""
    reason = _IN_GENERAL.get(number) or "the system refuses it"
    return f"{path}: cannot {doing} ({_symbol(number)}): {reason}"


def _symbol(number: int) -> str:
    return errno.errorcode.get(number, str(number))
