"""ResourceClaim objects as messages: what counts of them for preparing a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numalign.model.numa_mask import MAX_NUMA_ID
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
            told = {_path(each): each for each in status.get("devices") or ()}
            message.allocation.devices.extend(
                _device(result, told.get(_path(result), {})) for result in results
            )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the answer is no ResourceClaim: {error!r}") from error
    return message


def _path(device: Mapping[str, Any]) -> tuple[str, str, str]:
    return device["driver"], device["pool"], device["device"]


def _device(result: Mapping[str, Any], told: Mapping[str, Any]) -> cl.AllocatedDevice:
    """A device as it is allocated, and what its driver tells of it in the claim's status."""
    return cl.AllocatedDevice(
        request=result["request"],
        driver=result["driver"],
        pool=result["pool"],
        device=result["device"],
        share_id=result.get("shareID"),
        numa_nodes=_numa_nodes(told.get("data") or {}),
    )


def _numa_nodes(data: Mapping[str, Any]) -> list[int]:
    """The NUMA nodes in a driver's own data: `numaNode` or `numaNodes`; none where it tells none.

    A driver writes there what it likes: what is no node says nothing.
    """
    found = data.get("numaNodes", data.get("numaNode"))
    nodes = found if isinstance(found, list) else [found]
    return [node for node in nodes if type(node) is int and 0 <= node <= MAX_NUMA_ID]


def _controller(references: Iterable[Mapping[str, Any]]) -> str:
    for reference in references:
        if reference.get("controller"):
            return str(reference["uid"])
    return ""
