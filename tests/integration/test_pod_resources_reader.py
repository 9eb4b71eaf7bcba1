"""A reader that knows the published interface alone, against real processes of numalign."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from tests.integration.pod_resources_reader import Reader
from tests.integration.served_node import FPGA, GPU, ServedNode, container, pod

from numalign.model.cpu_set import CpuSet

pytestmark = pytest.mark.processes

GIB = 1 << 30


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short: a socket's path has at most 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="na-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def node(directory: Path) -> Iterator[ServedNode]:
    node = ServedNode(directory)
    yield node
    node.stop()


@pytest.fixture
def reader(node: ServedNode) -> Iterator[Reader]:
    reader = Reader(node.pod_resources)
    yield reader
    reader.close()


def shown(message: Any) -> Any:
    return MessageToDict(message, preserving_proto_field_name=True)


def listed(reader: Reader) -> dict[str, Any]:
    return {p.name: shown(p) for p in reader.call("List").pod_resources}


def big_pod() -> Any:
    return pod(
        "big",
        {
            "initContainers": [
                container("setup", cpu="2", memory="1Gi", gpu="1"),
                container("side", "Always", cpu="1", memory="1Gi"),
            ],
            "containers": [
                container("main", cpu="2", memory="2Gi", gpu="2", fpga="1"),
                container("idle", cpu="500m", memory="1Gi"),
            ],
        },
    )


def test_a_reader_sees_what_a_kubelet_would_show(node: ServedNode, reader: Reader) -> None:
    node.start("all")
    answer = node.admit(big_pod())
    node.admit(pod("small", {"containers": [container("only")]}, "other"))
    given = {a.container: a for a in answer.allocations}

    pods = listed(reader)

    assert sorted(pods) == ["big", "small"]
    assert pods["small"] == {
        "name": "small",
        "namespace": "other",
        "containers": [{"name": "only"}],
    }
    side, main, idle = pods["big"]["containers"]
    assert [side["name"], main["name"], idle["name"]] == ["side", "main", "idle"]
    assert cpu_list(side) == given["side"].cpus
    assert cpu_list(main) == given["main"].cpus
    assert "cpu_ids" not in idle
    assert memory_of(main) == {("memory", 2 * GIB): [0]}
    assert "devices" not in side
    devices = {(d["resource_name"], *d["device_ids"]) for d in main["devices"]}
    assert devices == {(GPU, "bridge"), (GPU, "g0"), (FPGA, "f0")}
    # A device on two NUMA nodes is two entries, one without topology has none (PR-7).
    assert [nodes_of(d) for d in main["devices"] if d["device_ids"] == ["bridge"]] == [[0], [1]]
    assert [nodes_of(d) for d in main["devices"] if d["device_ids"] == ["f0"]] == [None]
    assert (
        shown(reader.call("Get", pod_name="big", pod_namespace="default"))["pod_resources"]
        == pods["big"]
    )


def test_released_pods_are_gone_and_unknown_ones_an_error(node: ServedNode, reader: Reader) -> None:
    node.start("all")
    node.admit(big_pod())
    node.release("uid-big")

    assert listed(reader) == {}
    with pytest.raises(grpc.RpcError) as raised:
        reader.call("Get", pod_name="big", pod_namespace="default")
    assert raised.value.code() == grpc.StatusCode.UNKNOWN
    assert raised.value.details() == "pod big in namespace default not found"


def test_allocatable_is_what_the_node_can_give_out(node: ServedNode, reader: Reader) -> None:
    node.start("all")
    before = reader.call("GetAllocatableResources")
    node.admit(big_pod())

    after = reader.call("GetAllocatableResources")

    assert after == before
    assert sorted(after.cpu_ids) == [*range(1, 8), *range(9, 16)]
    assert {(m.memory_type, m.size, *[n.ID for n in m.topology.nodes]) for m in after.memory} == {
        ("memory", 15 * GIB, 0),
        ("memory", 16 * GIB, 1),
    }
    devices = [
        (d.resource_name, *d.device_ids, [n.ID for n in d.topology.nodes]) for d in after.devices
    ]
    assert sorted(devices) == [
        (FPGA, "f0", []),
        (GPU, "bridge", [0]),
        (GPU, "bridge", [1]),
        (GPU, "g0", [0]),
        (GPU, "g1", [0]),
        (GPU, "g2", [1]),
        (GPU, "g3", [1]),
    ]


def test_old_readers_see_devices_of_app_containers(node: ServedNode, reader: Reader) -> None:
    node.start("all")
    node.admit(pod("old", {"containers": [container("c", fpga="1")]}))

    # PodResources{name "old", namespace "default", containers{name "c", devices{fpga, f0}}}
    device = b"\x0a\x10example.com/fpga\x12\x02f0"
    held = b"\x0a\x01c\x12" + bytes([len(device)]) + device
    told = b"\x0a\x03old\x12\x07default\x1a" + bytes([len(held)]) + held
    assert reader.alpha_list() == b"\x0a" + bytes([len(told)]) + told


def test_too_many_calls_are_rejected(node: ServedNode, reader: Reader) -> None:
    node.start("all")
    calls = [reader._calls["List"].future(reader._messages["List"]()) for _ in range(200)]
    outcomes = [call.exception() for call in calls]

    rejected = [outcome for outcome in outcomes if outcome is not None]
    assert len(outcomes) - len(rejected) >= 10
    assert {(e.code(), e.details()) for e in rejected} == {
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
    }


def test_readers_follow_through_restarts_of_every_service(node: ServedNode, reader: Reader) -> None:
    services = ("topology", "cpu", "memory", "device", "admission")
    node.start(*services)
    node.admit(big_pod())
    before = listed(reader)

    node.stop("admission")
    node.start("admission")
    assert listed(reader) == before
    node.stop("topology")
    node.start("topology")
    assert listed(reader) == before
    node.admit(pod("late", {"containers": [container("c", gpu="1")]}))
    assert sorted(listed(reader)) == ["big", "late"]
    node.stop(*services)
    node.start(*services)
    assert sorted(listed(reader)) == ["big", "late"]


def cpu_list(told: dict[str, Any]) -> str:
    return str(CpuSet.of(int(cpu) for cpu in told["cpu_ids"]))


def memory_of(told: dict[str, Any]) -> dict[tuple[str, int], list[int]]:
    return {
        (m["memory_type"], int(m["size"])): [int(n.get("ID", 0)) for n in m["topology"]["nodes"]]
        for m in told["memory"]
    }


def nodes_of(device: dict[str, Any]) -> list[int] | None:
    if "topology" not in device:
        return None
    return [int(n.get("ID", 0)) for n in device["topology"]["nodes"]]
