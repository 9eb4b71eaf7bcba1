"""What a container asks for, read off its cgroup settings where the pod's spec cannot be had.

For Guaranteed pods alone: only there limits and requests are the same, so that what the
kubelet made of the limits says what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "estimated:"
"""What the uid of an estimated admission begins with; pod uid and container name follow."""

ANNOTATION = "numalign.io/estimated"

_LOWER_QOS = re.compile(r"(?:^|[/-])(?:burstable|besteffort)(?:[/-]|$)")
_PAGE_SIZE = re.compile(r"([0-9]+)(KB|MB|GB)\Z")
_SHARES_PER_CPU = 1024
_MILLI = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupSettings:
    """What the kubelet asked the runtime to limit a container to; 0 is not set.

    `quota` and `period` are microseconds, `memory` bytes, `hugepages` bytes by page size as
    the runtime names it (`2MB`).
    """

    parent: str
    quota: int = 0
    period: int = 0
    shares: int = 0
    memory: int = 0
    hugepages: tuple[tuple[str, int], ...] = ()


def estimated_uid(pod_uid: str, container: str) -> str:
    """The uid under which a container of this pod is admitted by itself."""
    return f"{PREFIX}{pod_uid}:{container}"


def is_guaranteed(parent: str) -> bool:
    """Whether a pod's cgroup, of either cgroup driver, is where Guaranteed pods are."""
    return "kubepods" in parent and not _LOWER_QOS.search(parent)


def estimated_pod(
    pod_uid: str, name: str, namespace: str, container: str, settings: CgroupSettings
) -> Mapping[str, Any] | None:
    """A pod of this one container, as JSON; None where its pod is not Guaranteed.

    CPUs come from the quota, or from the weight where quotas are off.
    """
    if not is_guaranteed(settings.parent) or settings.memory <= 0:
        return None
    if settings.quota > 0 and settings.period > 0:
        cpus = round(settings.quota * _MILLI / settings.period)
    else:
        cpus = round(settings.shares * _MILLI / _SHARES_PER_CPU)
    if cpus <= 0:
        return None
    amounts = {"cpu": f"{cpus}m", "memory": str(settings.memory)}
    for size, limit in settings.hugepages:
        if limit > 0 and (found := _PAGE_SIZE.match(size)):
            amounts[f"hugepages-{found[1]}{found[2][0]}i"] = str(limit)
    return {
        "metadata": {
            "uid": estimated_uid(pod_uid, container),
            "name": name,
            "namespace": namespace,
            "annotations": {ANNOTATION: "true"},
        },
        "spec": {
            "containers": [
                {"name": container, "resources": {"requests": amounts, "limits": amounts}}
            ]
        },
    }
