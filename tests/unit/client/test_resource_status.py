"""The health of a pod's devices as its status says it."""

from __future__ import annotations

from numalign_client import (
    AdmittedPod,
    ContainerAllocation,
    ContainerEdits,
    DeviceAllocation,
    UnhealthyDevice,
    allocated_resources_status,
)

GPU, NIC = "example.com/gpu", "example.com/nic"


def devices(resource: str, *ids: str) -> DeviceAllocation:
    return DeviceAllocation(
        resource=resource, ids=ids, by_numa_node={0: ids}, edits=ContainerEdits()
    )


POD = AdmittedPod(
    pod_uid="u",
    namespace="default",
    name="p",
    owner="default",
    revision=1,
    qos_class="Burstable",
    allocations=(
        ContainerAllocation(container="a", devices=(devices(GPU, "g0", "g1"), devices(NIC, "g0"))),
        ContainerAllocation(container="b", devices=(devices(GPU, "g2"),)),
        ContainerAllocation(container="none"),
    ),
    pod_allocation=None,
    resources=None,
    containers=("a", "b", "none"),
    config_generation=1,
    problems=(),
)


def sick(uid: str, container: str, resource: str, id_: str, health: str) -> UnhealthyDevice:
    return UnhealthyDevice(
        pod_uid=uid, container=container, resource=resource, id=id_, health=health
    )


def test_every_device_is_named_and_what_is_not_said_is_healthy() -> None:
    unhealthy = [
        sick("u", "a", GPU, "g1", "Unhealthy"),
        sick("u", "b", GPU, "g2", "Unknown"),
        sick("other", "a", GPU, "g0", "Unhealthy"),
    ]

    assert allocated_resources_status(POD, unhealthy) == {
        "a": [
            {
                "name": GPU,
                "resources": [
                    {"resourceID": "g0", "health": "Healthy"},
                    {"resourceID": "g1", "health": "Unhealthy"},
                ],
            },
            {"name": NIC, "resources": [{"resourceID": "g0", "health": "Healthy"}]},
        ],
        "b": [{"name": GPU, "resources": [{"resourceID": "g2", "health": "Unknown"}]}],
    }
