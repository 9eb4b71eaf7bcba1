"""Keeping CFS quotas off where containers have CPUs of their own (CPU-87).

A quota would throttle a container on CPUs that nobody else may use. The runtime can be told for
a container, but not for the group of its pod, and the kubelet sets both again at every resize.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from numalign_agent.cgroups.errors import CPU_MAX, CgroupError, NoCgroups
from numalign_agent.cgroups.paths import pod_path, relative_path
from numalign_agent.cgroups.plan import is_unlimited
from numalign_agent.cgroups.tree import CgroupTree

_UNLIMITED = "max"


@dataclass(frozen=True, slots=True)
class QuotaReport:
    """What one look found. `lifted` are groups that had a quota, with what it was.

    `failures` are texts that name a group's file. `unavailable` says why nothing could be
    looked at.
    """

    lifted: tuple[tuple[str, str], ...] = ()
    failures: tuple[str, ...] = ()
    unavailable: str = ""


def groups_without_quota(cgroups_paths: Iterable[str]) -> tuple[PurePosixPath, ...]:
    """The groups of these containers and of their pods, a pod before its containers. Pure."""
    pods: dict[PurePosixPath, None] = {}
    containers: dict[PurePosixPath, None] = {}
    for text in cgroups_paths:
        own, pod = relative_path(text), pod_path(text)
        if pod:
            pods[PurePosixPath("/", pod)] = None
        if own:
            containers[PurePosixPath("/", own)] = None
    return (*pods, *containers)


def lift_quotas(tree: CgroupTree, cgroups_paths: Iterable[str]) -> QuotaReport:
    """Take the quota off the containers at these cgroups, as a runtime writes them, and their pods.

    Groups that are gone are passed over. May block shortly.
    """
    try:
        tree.check()
    except NoCgroups as error:
        return QuotaReport(unavailable=str(error))
    lifted: list[tuple[str, str]] = []
    failures: list[str] = []
    for group in groups_without_quota(cgroups_paths):
        if not tree.path(group, CPU_MAX).exists():
            continue
        try:
            limit = tree.read(group, CPU_MAX)
            if is_unlimited(limit):
                continue
            tree.write(group, CPU_MAX, _UNLIMITED)
        except CgroupError as error:
            if tree.has(group):
                failures.append(str(error))
            continue
        lifted.append((str(group), limit))
    return QuotaReport(tuple(lifted), tuple(failures))
