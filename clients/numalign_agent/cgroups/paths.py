"""Where a container's control group is, as both cgroup drivers lay them out. Pure.

cgroupfs: `/kubepods/burstable/pod<uid>/<id>`. systemd:
`kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope`,
which runtimes write as `kubepods-burstable-pod<uid>.slice:cri-containerd:<id>`.
"""

from __future__ import annotations

import re

_SYSTEMD = re.compile(r"(?P<slice>[^:/]+\.slice):(?P<prefix>[^:/]*):(?P<name>[^:/]+)\Z")
_POD = re.compile(r"(?:[^/]*-)?pod[^/]+\Z")


def relative_path(cgroups_path: str) -> str:
    """A cgroup below the root, from what a runtime writes: a path, or `slice:prefix:name`."""
    found = _SYSTEMD.match(cgroups_path)
    if found is None:
        return cgroups_path.strip("/")
    unit = f"{found['prefix']}-{found['name']}" if found["prefix"] else found["name"]
    return f"{slice_path(found['slice'])}/{unit}.scope"


def slice_path(name: str) -> str:
    """The cgroup of a slice: systemd puts slices into each other by the dashes of their names."""
    parts, so_far = [], ""
    for piece in name.removesuffix(".slice").split("-"):
        so_far = f"{so_far}-{piece}" if so_far else piece
        parts.append(f"{so_far}.slice")
    return "/".join(parts)


def pod_path(cgroups_path: str) -> str:
    """The cgroup of the pod that a container is in; empty where it is in none of a pod.

    Some runtimes put a group of their own around a container's: the nearest one that is named
    for a pod counts.
    """
    parts = relative_path(cgroups_path).split("/")[:-1]
    while parts and not _POD.match(parts[-1]):
        parts.pop()
    return "/".join(parts)
