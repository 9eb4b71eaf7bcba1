"""ResourceClaim objects as messages: what counts of them for preparing a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numalign.v1 import claims_pb2 as cl


def claim_message(claim: Mapping[str, Any]) -> cl.ResourceClaim:
    """A `resource.k8s.io/v1` ResourceClaim. Raises ValueError for an object that is none."""
    try:
        metadata, status = claim["metadata"], claim.get("status") or {}
        message = cl.ResourceClaim(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            controller_uid=_controller(metadata.get("ownerReferences") or ()),
            reserved_for=[
                cl.ClaimConsumer(
                    api_group=each.get("apiGroup") or "",
                    resource=each["resource"],
                    name=each["name"],
                    uid=each["uid"],
                )
                for each in status.get("reservedFor") or ()
            ],
        )
        allocation = status.get("allocation")
        if allocation is not None:
            results = (allocation.get("devices") or {}).get("results") or ()
            message.allocation.SetInParent()
            message.allocation.devices.extend(_device(result) for result in results)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the answer is no ResourceClaim: {error!r}") from error
    return message


def _device(result: Mapping[str, Any]) -> cl.AllocatedDevice:
    return cl.AllocatedDevice(
        request=result["request"],
        driver=result["driver"],
        pool=result["pool"],
        device=result["device"],
        share_id=result.get("shareID"),
    )


def _controller(references: Iterable[Mapping[str, Any]]) -> str:
    for reference in references:
        if reference.get("controller"):
            return str(reference["uid"])
    return ""
