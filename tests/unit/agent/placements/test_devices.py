"""Devices in a pod's status."""

from __future__ import annotations

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_agent.placements.devices import HeldDevices


def unhealthy(uid: str, device: str, health: str = "Unhealthy") -> pb.UnhealthyDevice:
    return pb.UnhealthyDevice(
        pod_uid=uid, container="c", resource="example.com/gpu", id=device, health=health
    )


def holding(*ids: str) -> ad.AdmitResponse:
    answer = ad.AdmitResponse()
    answer.allocations.add(container="none")
    held = answer.allocations.add(container="c")
    held.devices.add(resource="example.com/gpu", ids=ids)
    return answer


def test_every_device_that_is_held_is_shown_with_its_health() -> None:
    devices = HeldDevices()
    devices.granted("a", holding("g0", "g1"))
    devices.heard([unhealthy("a", "g1")])

    assert devices.statuses("a") == {
        "c": [
            {
                "name": "example.com/gpu",
                "resources": [
                    {"resourceID": "g0", "health": "Healthy"},
                    {"resourceID": "g1", "health": "Unhealthy"},
                ],
            }
        ]
    }
    assert devices.statuses("b") == {}
    devices.forget(["a", "b"])
    assert devices.statuses("a") == {}


def test_only_pods_for_which_it_is_news_are_named() -> None:
    devices = HeldDevices()

    assert devices.heard([unhealthy("b", "g"), unhealthy("a", "g")]) == ("a", "b")
    assert devices.heard([unhealthy("a", "g"), unhealthy("b", "g")]) == ()
    assert devices.heard([unhealthy("a", "g", "Unknown"), unhealthy("b", "g")]) == ("a",)
    assert devices.heard([]) == ("a", "b")
