"""numalign beside a kubelet that owns the devices: real processes, real sockets."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.fake_kubelet import FakeKubelet, device, holding
from tests.integration.pod_resources_reader import Reader
from tests.integration.served_node import GPU, ServedNode, container, pod

from numalign.model.cpu_set import CpuSet
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.processes

GPUS = [device(GPU, f"g{i}", i // 2) for i in range(4)]
CPUS = {0: CpuSet.parse("0-3,8-11"), 1: CpuSet.parse("4-7,12-15")}


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short: a socket's path has at most 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="na-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def kubelet(directory: Path) -> Iterator[FakeKubelet]:
    kubelet = FakeKubelet(directory)
    yield kubelet
    kubelet.stop()


@pytest.fixture
def node(directory: Path, kubelet: FakeKubelet) -> Iterator[ServedNode]:
    node = ServedNode(directory, observing(kubelet.socket))
    yield node
    node.stop()


def observing(socket: Path) -> dict[str, Any]:
    return {
        "devices": [],
        "devicePlugins": {
            "mode": "observer",
            "podResourcesSocket": str(socket),
            "pollInterval": "200ms",
            "retryAfter": "1s",
        },
    }


def wants(name: str, gpus: int = 1) -> Any:
    return pod(name, {"containers": [container("c", cpu="2", memory="1Gi", gpu=str(gpus))]})


def given(answer: ad.AdmitResponse) -> tuple[set[int], list[str], set[int]]:
    """NUMA nodes of the CPUs, device ids, NUMA nodes of the memory."""
    (allocation,) = answer.allocations
    cpus = CpuSet.parse(allocation.cpus)
    return (
        {n for n, here in CPUS.items() if cpus & here},
        [id_ for d in allocation.devices for id_ in d.ids],
        {n for block in allocation.memory for n in block.numa_nodes},
    )


@pytest.mark.parametrize("serves_get", [True, False], ids=["get", "list"])
@pytest.mark.parametrize(("gpu", "where"), [("g1", 0), ("g2", 1)])
def test_cpus_and_memory_follow_the_devices_that_the_pod_has(
    node: ServedNode, kubelet: FakeKubelet, gpu: str, where: int, serves_get: bool
) -> None:
    kubelet.tell(GPUS, [holding("p", c=[device(GPU, gpu, where)])], serves_get=serves_get)
    kubelet.start()
    node.start("all")

    answer = node.admit(wants("p"))

    assert answer.verdict == pb.VERDICT_ADMITTED
    assert given(answer) == ({where}, [gpu], {where})
    channel, stub = node.admission()
    with channel:
        prepared = stub.PrepareContainer(
            ad.PrepareContainerRequest(pod_uid="uid-p", container_name="c"), timeout=60
        )
    assert prepared.edits == pb.ContainerEdits()
    assert [list(d.ids) for d in prepared.allocation.devices] == [[gpu]]


def test_a_node_that_is_not_here_says_nothing(node: ServedNode, kubelet: FakeKubelet) -> None:
    odd = [device(GPU, "minus", -1), device(GPU, "far", 7)]
    kubelet.tell(odd, [holding("p", c=odd)])
    kubelet.start()
    node.start("all")

    answer = node.admit(wants("p", 2))

    (allocation,) = answer.allocations
    assert answer.verdict == pb.VERDICT_ADMITTED
    assert allocation.affinity.preferred
    assert [(n.numa_node, list(n.ids)) for n in allocation.devices[0].by_numa_node] == [
        (-1, ["far", "minus"])
    ]
    log = (node.directory / "all.log").read_text()
    assert 'device \\"minus\\" is on NUMA node -1, which is not here' in log
    assert 'device \\"far\\" is on NUMA node 7, which is not here' in log


def test_a_pod_waits_until_the_kubelet_has_given_it_devices(
    node: ServedNode, kubelet: FakeKubelet
) -> None:
    kubelet.tell(GPUS, [holding("other", c=[device(GPU, "g0", 0)])])
    kubelet.start()
    node.start("all")

    early = node.admit(wants("p"))
    kubelet.tell(GPUS, [holding("p", c=[device(GPU, "g3", 1)])])
    answer = node.admit(wants("p"))

    assert early.verdict == pb.VERDICT_DEFERRED
    assert early.reason == "KubeletDevicesNotKnown"
    assert early.message == f'the kubelet has given container "c" no {GPU} yet'
    assert early.retry_after.ToTimedelta().total_seconds() == 1.0
    assert given(answer) == ({1}, ["g3"], {1})


def test_without_the_kubelet_only_pods_with_devices_wait(
    node: ServedNode, kubelet: FakeKubelet
) -> None:
    node.start("all")

    plain = node.admit(pod("plain", {"containers": [container("c", cpu="1", memory="1Gi")]}))
    early = node.admit(wants("p"))
    kubelet.tell(GPUS, [holding("p", c=[device(GPU, "g3", 1)])])
    kubelet.start()
    answer = until_admitted(node, wants("p"))

    assert plain.verdict == pb.VERDICT_ADMITTED
    assert early.verdict == pb.VERDICT_DEFERRED
    assert "has not told of its devices yet" in early.message
    assert given(answer) == ({1}, ["g3"], {1})


def test_pods_keep_what_they_have_through_restarts_of_everybody(
    node: ServedNode, kubelet: FakeKubelet
) -> None:
    services = ("topology", "cpu", "memory", "device", "admission")
    kubelet.tell(GPUS, [holding("p", c=[device(GPU, "g2", 1)])])
    kubelet.start()
    node.start(*services)
    before = until_admitted(node, wants("p"))

    kubelet.stop()
    node.stop("device")
    node.start("device")
    again = node.admit(wants("p"))
    waiting = node.admit(wants("q"))
    kubelet.tell(
        GPUS,
        [holding("p", c=[device(GPU, "g2", 1)]), holding("q", c=[device(GPU, "g0", 0)])],
    )
    kubelet.start()
    other = until_admitted(node, wants("q"))

    assert again.already_admitted
    assert again.allocations == before.allocations
    assert waiting.verdict == pb.VERDICT_DEFERRED
    assert given(other) == ({0}, ["g0"], {0})


def test_what_is_free_is_what_the_kubelet_has_left(node: ServedNode, kubelet: FakeKubelet) -> None:
    kubelet.tell(GPUS[:3], [holding("p", c=[device(GPU, "g3", 1), device(GPU, "g0", 0)])])
    kubelet.start()
    node.start("all")
    channel, stub = node.admission()
    with channel:
        deadline = time.monotonic() + 60
        while True:
            told = stub.GetNodeResources(
                ad.GetNodeResourcesRequest(), timeout=60, wait_for_ready=True
            ).resources
            if told.devices or time.monotonic() > deadline:
                break
            time.sleep(0.05)

    (gpus,) = told.devices
    assert (gpus.resource, gpus.capacity, gpus.allocatable) == (GPU, 4, 3)
    assert list(gpus.free) == ["g1", "g2"]
    assert [dict(n.largest_shape.devices) for n in told.numa_nodes] == [{GPU: 1}, {GPU: 1}]


def test_numalign_can_follow_numalign(directory: Path) -> None:
    """What the server of pod resources tells is enough to follow it: devices, nodes, use."""
    for name in ("a", "b"):
        (directory / name).mkdir()
    owner = ServedNode(directory / "a")
    follower = ServedNode(directory / "b", observing(owner.pod_resources))
    try:
        owner.start("all")
        first = owner.admit(wants("p", 3))
        follower.start("all")
        second = until_admitted(follower, wants("p", 3))
        reader = Reader(follower.pod_resources)
        told = reader.call("Get", pod_name="p", pod_namespace="default").pod_resources
        reader.close()
    finally:
        owner.stop()
        follower.stop()

    assert given(second)[1] == given(first)[1]
    assert sorted(i for d in told.containers[0].devices for i in d.device_ids) == sorted(
        id_ for d in first.allocations[0].devices for n in d.by_numa_node for id_ in n.ids
    )


def until_admitted(node: ServedNode, which: Any) -> ad.AdmitResponse:
    """Ask as an agent does: again after a deferral."""
    deadline = time.monotonic() + 60
    while True:
        answer = node.admit(which)
        if answer.verdict != pb.VERDICT_DEFERRED or time.monotonic() > deadline:
            assert answer.verdict == pb.VERDICT_ADMITTED
            return answer
        time.sleep(0.1)
