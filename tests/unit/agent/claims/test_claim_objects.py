"""ResourceClaim objects as messages."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.v1 import claims_pb2 as cl
from numalign_agent.claims.objects import claim_message

METADATA = {"namespace": "ns", "name": "c1", "uid": "u1"}


def test_everything_that_counts() -> None:
    owners = [{"uid": "x"}, {"uid": "p1", "controller": True}]
    results = [
        {"request": "r/a", "driver": "d", "pool": "p", "device": "x", "shareID": "s"},
        {"request": "r", "driver": "e", "pool": "q", "device": "y", "adminAccess": True},
    ]
    claim = {
        "metadata": {**METADATA, "ownerReferences": owners},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [
                {"resource": "pods", "name": "p", "uid": "p1"},
                {"apiGroup": "x.io", "resource": "widgets", "name": "w", "uid": "w1"},
            ],
        },
    }

    assert claim_message(claim) == cl.ResourceClaim(
        namespace="ns",
        name="c1",
        uid="u1",
        controller_uid="p1",
        reserved_for=[
            cl.ClaimConsumer(resource="pods", name="p", uid="p1"),
            cl.ClaimConsumer(api_group="x.io", resource="widgets", name="w", uid="w1"),
        ],
        allocation=cl.ClaimResult(
            devices=[
                cl.AllocatedDevice(request="r/a", driver="d", pool="p", device="x", share_id="s"),
                cl.AllocatedDevice(request="r", driver="e", pool="q", device="y"),
            ]
        ),
    )


@pytest.mark.parametrize(
    ("status", "allocated"),
    [
        pytest.param({}, False, id="no status"),
        pytest.param({"status": {"allocation": None}}, False, id="null"),
        pytest.param({"status": {"allocation": {}}}, True, id="no devices"),
        pytest.param({"status": {"allocation": {"devices": {"results": []}}}}, True, id="empty"),
    ],
)
def test_an_allocation_of_nothing_is_one(status: dict[str, Any], allocated: bool) -> None:
    message = claim_message({"metadata": METADATA, **status})

    assert message.HasField("allocation") is allocated
    assert not message.allocation.devices


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"metadata": {"name": "c1"}}, id="nameless"),
        pytest.param({"metadata": METADATA, "status": "ready"}, id="a word"),
        pytest.param(
            {"metadata": METADATA, "status": {"allocation": {"devices": {"results": [{}]}}}},
            id="a device without a driver",
        ),
    ],
)
def test_what_is_no_claim(claim: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the answer is no ResourceClaim"):
        claim_message(claim)


@pytest.mark.parametrize(
    ("data", "nodes"),
    [
        pytest.param({"numaNode": 1}, [1], id="one"),
        pytest.param({"numaNodes": [0, 2]}, [0, 2], id="several"),
        pytest.param({"numaNode": "1"}, [], id="text"),
        pytest.param({"numaNode": -1}, [], id="none"),
        pytest.param({"numaNodes": [64, True, 3]}, [3], id="no node"),
        pytest.param({}, [], id="silent"),
        pytest.param(None, [], id="null"),
    ],
)
def test_what_a_driver_tells_of_where_its_device_is(data: object, nodes: list[int]) -> None:
    device = {"driver": "d", "pool": "p", "device": "x"}
    other = {"driver": "d", "pool": "p", "device": "y", "data": {"numaNode": 9}}
    status = {
        "allocation": {"devices": {"results": [{"request": "r", **device}]}},
        "devices": [other, {**device, "data": data}],
    }
    (told,) = claim_message({"metadata": METADATA, "status": status}).allocation.devices

    assert list(told.numa_nodes) == nodes
