"""Which devices containers hold and how they are doing, as a pod's status shows it (DEV-50)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

HEALTHY = "Healthy"

_Held = dict[str, dict[str, tuple[str, ...]]]
"""Device ids by container and resource."""


class HeldDevices:
    """What Admission said last."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._health: dict[tuple[str, str, str, str], str] = {}

    def granted(self, pod_uid: str, answer: ad.AdmitResponse) -> None:
        """What a pod holds."""
        self._held[pod_uid] = {
            allocation.container: {
                devices.resource: tuple(devices.ids) for devices in allocation.devices
            }
            for allocation in answer.allocations
            if allocation.devices
        }

    def heard(self, unhealthy: Iterable[pb.UnhealthyDevice]) -> tuple[str, ...]:
        """All devices that are held and not healthy; the pods for which that is news."""
        before = self._health
        self._health = {(d.pod_uid, d.container, d.resource, d.id): d.health for d in unhealthy}
        changed = before.items() ^ self._health.items()
        return tuple(sorted({uid for (uid, *_), _health in changed}))

    def forget(self, pod_uids: Iterable[str]) -> None:
        """Pods are gone."""
        for uid in pod_uids:
            self._held.pop(uid, None)

    def statuses(self, pod_uid: str) -> Mapping[str, list[dict[str, Any]]]:
        """`allocatedResourcesStatus` of each container of a pod that holds devices, by name."""
        return {
            container: [
                {
                    "name": resource,
                    "resources": [
                        {
                            "resourceID": device,
                            "health": self._health.get(
                                (pod_uid, container, resource, device), HEALTHY
                            ),
                        }
                        for device in ids
                    ],
                }
                for resource, ids in held.items()
            ]
            for container, held in self._held.get(pod_uid, {}).items()
        }
