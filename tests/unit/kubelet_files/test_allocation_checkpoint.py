"""Allocated-resources files beyond the recordings: claims, pod-level sections, bad quantities."""

from __future__ import annotations

import json

import pytest

from numalign.kubelet_files.allocation_checkpoint import (
    AllocatedResources,
    AllocationCheckpoint,
    ClaimReference,
    PodAllocation,
    read_allocation_checkpoint,
    write_allocation_checkpoint,
)
from numalign.kubelet_files.errors import (
    ALLOCATION_OWNER,
    CorruptCheckpoint,
    UndecodableCheckpoint,
)
from numalign.kubelet_files.fnv import fnv1a_32
from numalign.model.ids import PodUid
from numalign.model.quantity import Quantity

FULL = AllocationCheckpoint(
    pods={
        PodUid("u"): PodAllocation(
            containers={
                "b": AllocatedResources(
                    requests={"memory": Quantity.parse("1Gi"), "cpu": Quantity.parse("1500m")},
                    claims=(ClaimReference(name="gpu", request="one"), ClaimReference(name="x")),
                ),
                "a": AllocatedResources(),
            },
            pod_level=AllocatedResources(limits={"cpu": Quantity.parse("2")}),
        )
    }
)
FULL_DATA = (
    '{"entries":{"u":{"ContainerResources":{"a":{},"b":{"requests":{"cpu":"1500m",'
    '"memory":"1Gi"},"claims":[{"name":"gpu","request":"one"},{"name":"x"}]}},'
    '"PodLevelResources":{"limits":{"cpu":"2"}}}}}'
)


def file_of(data: str) -> str:
    return json.dumps({"data": data, "checksum": fnv1a_32("(string)" + data)})


def test_written_data() -> None:
    assert json.loads(write_allocation_checkpoint(FULL))["data"] == FULL_DATA


def test_what_is_written_reads_back() -> None:
    assert read_allocation_checkpoint(write_allocation_checkpoint(FULL)).pods == FULL.pods


def test_quantities_may_be_bare_numbers() -> None:
    data = FULL_DATA.replace('{"cpu":"2"}', '{"cpu":2}')

    assert read_allocation_checkpoint(file_of(data)).pods == FULL.pods


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(FULL_DATA.replace('"1500m"', '"1500q"'), id="bad-quantity"),
        pytest.param(FULL_DATA.replace('"1500m"', "[]"), id="quantity-of-another-kind"),
        pytest.param(FULL_DATA[:-1], id="cut-short"),
        pytest.param("[]", id="not-an-object"),
    ],
)
def test_undecodable_data(data: str) -> None:
    with pytest.raises(UndecodableCheckpoint):
        read_allocation_checkpoint(file_of(data))


def test_missing_checksum_is_corrupt() -> None:
    with pytest.raises(CorruptCheckpoint) as refused:
        read_allocation_checkpoint('{"data":"{}"}')

    assert refused.value.refusal(ALLOCATION_OWNER, "/r/allocated_pods_state") == (
        "could not restore state from checkpoint: checkpoint is corrupted, please drain this node "
        'and delete pod resource information checkpoint file "/r/allocated_pods_state" before '
        "restarting Kubelet"
    )
