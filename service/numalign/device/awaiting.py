"""Resources whose plugins are waited for: known before the start, not reported since.

Separate from allocation: whether it is too early to judge a pod is asked before anything is
chosen, and only where the strategy is to wait (the kubelet judges, and refuses, at once).
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.device.inventory import Inventory
from numalign.errors import Deferred
from numalign.model.pod import Container, Pod

REASON = "DevicePluginNotReady"
"""The reason of a deferral."""


def refuse_awaited(
    inventory: Inventory,
    pod: Pod,
    containers: Iterable[Container],
    retry_after: float,
    *,
    claims_count: bool,
) -> None:
    """Raise Deferred where one of the containers asks for devices that are waited for.

    `claims_count`: what a DRA claim backs is none of the plugins' business.
    """
    for container in containers:
        for resource in sorted(container.resources.limits):
            if claims_count and (container.name, resource) in pod.claimed_resources:
                continue
            if inventory.of(resource).awaited:
                raise Deferred(
                    REASON,
                    f"the device plugin of {resource} has not reported since the device "
                    "provider started",
                    retry_after,
                )
