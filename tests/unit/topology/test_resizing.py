"""The Topology Manager resizes admitted pods: what is a resize, what it keeps, what it leaves."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from grpc import StatusCode, aio
from tests.integration.node_document import GPU, document
from tests.integration.one_node import OneNode

from numalign.config.loader import load_settings
from numalign.config.settings import Service
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json
from numalign.process.node import Node
from numalign.topology.resizing import MANAGED_AS_WHOLE
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1 import types_pb2 as pb

EXCLUSIVE = {
    "InPlacePodVerticalScalingExclusiveCPUs": True,
    "InPlacePodVerticalScalingExclusiveMemory": True,
}


@asynccontextmanager
async def opened(
    directory: Path, *, gates: dict[str, bool] | None = None, mode: str = "safe", **keys: Any
) -> AsyncIterator[OneNode]:
    """A node with these feature gates and keys of KubeletConfiguration."""
    path = directory / "config.yaml"
    settings = document(directory, compatibility=mode) | {"featureGates": gates or {}} | keys
    path.write_text(yaml.safe_dump(settings))
    node = await Node.open(load_settings(path, os.environ, is_root=False))
    try:
        await node.serving()
        one = OneNode(node)
        await one.settled()
        yield one
    finally:
        await node.close()


def container(
    name: str, cpu: str = "1", memory: str = "1Gi", *, guaranteed: bool = False, **more: Any
) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    limits = requests if guaranteed else {"cpu": "8", "memory": "8Gi"}
    return {"name": name, "resources": {"requests": requests, "limits": limits}} | more


def pod(*containers: dict[str, Any], **spec: Any) -> core_pb2.Pod:
    """The pod `a`."""
    return pod_from_json(
        {
            "metadata": {"name": "a", "namespace": "default", "uid": "a"},
            "spec": {"containers": list(containers) or [container("c")], **spec},
        }
    )


def sized(cpu: str = "1", memory: str = "1Gi") -> core_pb2.Pod:
    """A pod whose one container is Guaranteed."""
    return pod(container("c", cpu, memory, guaranteed=True))


async def ask(node: OneNode, wanted: core_pb2.Pod, **fields: Any) -> ad.AdmitResponse:
    """Ask the Topology Manager itself, where no handler stands before it."""
    stub: tm_grpc.TopologyManagerAsyncStub = tm_grpc.TopologyManagerStub(
        node.node.channel(Service.TOPOLOGY)
    )
    request = tm.TopologyManagerAdmitRequest(pod=wanted.SerializeToString(), **fields)
    return (await stub.Admit(request)).decision


async def resize(node: OneNode, wanted: core_pb2.Pod, **fields: Any) -> ad.AdmitResponse:
    return await ask(node, wanted, operation=pb.OPERATION_RESIZE, **fields)


async def record(node: OneNode) -> pb.AdmissionRecord:
    (only,) = (await node.listing()).admissions
    return only


def requests(resources: pb.PodResources) -> dict[str, dict[str, str]]:
    return {entry.container: dict(entry.amounts.requests) for entry in resources.containers}


@pytest.mark.parametrize("mode", ["safe", "kubelet"])
async def test_a_granted_resize_is_recorded(tmp_path: Path, mode: str) -> None:
    """ALLOC-9; the pod keeps its place in the list, also over a restart."""
    async with opened(tmp_path, mode=mode) as node:
        await ask(node, pod())
        before = await record(node)
        watching = node.admission.WatchAssignments(
            ad.WatchAssignmentsRequest(from_revision=before.revision)
        )
        answer = await resize(node, pod(container("c", "2", "3Gi")))
        after = await record(node)
        changed = await anext(
            event async for event in watching if event.changed.revision > before.revision
        )
        watching.cancel()
        assert await node.faults() == []
    async with opened(tmp_path, mode=mode) as node:
        restarted = await record(node)

    assert answer.verdict == pb.VERDICT_ADMITTED
    assert not answer.already_admitted
    assert requests(before.resources) == {"c": {"cpu": "1", "memory": "1Gi"}}
    assert requests(after.resources) == {"c": {"cpu": "2", "memory": "3Gi"}}
    assert answer.resources == after.resources
    assert after.revision == answer.revision > before.revision
    assert changed.changed == after
    assert restarted == after


async def test_nothing_to_resize(tmp_path: Path) -> None:
    """RES-3: equal to the allocation, by value."""
    async with opened(tmp_path) as node:
        first = await ask(node, pod())
        answer = await resize(node, pod(container("c", "1000m", "1024Mi")))

    assert (answer.verdict, answer.already_admitted) == (pb.VERDICT_ADMITTED, True)
    assert answer.revision == first.revision
    assert requests(answer.resources) == {"c": {"cpu": "1", "memory": "1Gi"}}


async def test_a_dry_run_says_what_would_be(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        await ask(node, pod())
        before = await record(node)
        answer = await resize(node, pod(container("c", "2")), dry_run=True)

        assert (answer.verdict, answer.dry_run) == (pb.VERDICT_ADMITTED, True)
        assert requests(answer.resources) == {"c": {"cpu": "2", "memory": "1Gi"}}
        assert await record(node) == before


async def test_an_unknown_pod_is_not_found(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        with pytest.raises(aio.AioRpcError) as unknown:
            await resize(node, pod())

    assert unknown.value.code() == StatusCode.NOT_FOUND
    assert 'pod_uid: pod "a" is not admitted' in (unknown.value.details() or "")


@pytest.mark.parametrize(
    ("wanted", "fields", "field"),
    [
        pytest.param(
            pod(container("c") | {"resources": {"limits": {GPU: "1"}}}),
            {},
            f"spec.containers[0].resources.limits[{GPU}]",
            id="devices",
        ),
        pytest.param(pod(container("c"), container("d")), {}, "spec.containers", id="container"),
        pytest.param(
            pod(container("c", guaranteed=True)), {}, "status.qosClass", id="other-qos-class"
        ),
        pytest.param(pod(container("c", "2")), {"owner": "other"}, "owner", id="owner"),
    ],
)
async def test_what_is_no_resize(
    tmp_path: Path, wanted: core_pb2.Pod, fields: dict[str, str], field: str
) -> None:
    async with opened(tmp_path) as node:
        await ask(node, pod())
        before = await record(node)
        with pytest.raises(aio.AioRpcError) as refused:
            await resize(node, wanted, **fields)

        assert refused.value.code() == StatusCode.FAILED_PRECONDITION
        assert (refused.value.details() or "").startswith(f"{field}: ")
        assert await record(node) == before


@pytest.mark.parametrize("mode", ["safe", "kubelet"])
async def test_a_refused_resize_leaves_the_pod_what_it_has(tmp_path: Path, mode: str) -> None:
    """CPU-89: another number than it holds fits nowhere under a policy that guarantees."""
    async with opened(tmp_path, mode=mode, gates=EXCLUSIVE) as node:
        first = await ask(node, sized("2"))
        before = await record(node)
        answer = await resize(node, sized("3"))
        after = await record(node)
        another = await ask(node, sized("2"))
        assert await node.faults() == []

    assert (answer.verdict, answer.reason) == (pb.VERDICT_REJECTED, "TopologyAffinityError")
    assert answer.handler == "topology-manager"
    assert list(answer.allocations) == []
    assert requests(answer.resources) == {"c": {"cpu": "2", "memory": "1Gi"}}
    assert after == before
    assert another.allocations[0].cpus == first.allocations[0].cpus


async def test_a_policy_that_guarantees_nothing_keeps_the_cpus(tmp_path: Path) -> None:
    """CPU-89: under best-effort the assignment is kept, whatever the number."""
    async with opened(tmp_path, gates=EXCLUSIVE, topologyManagerPolicy="best-effort") as node:
        first = await ask(node, sized("2"))
        answer = await resize(node, sized("3"))
        after = await record(node)

    assert answer.verdict == pb.VERDICT_ADMITTED
    assert answer.allocations[0].cpus == first.allocations[0].cpus == after.allocations[0].cpus
    assert requests(after.resources)["c"]["cpu"] == "3"


@pytest.mark.parametrize(
    ("mode", "booked"),
    [pytest.param("safe", 0, id="safe"), pytest.param("kubelet", 2, id="kubelet")],
)
async def test_init_containers_that_ended_take_nothing_again(
    tmp_path: Path, mode: str, booked: int
) -> None:
    """In the kubelet they are judged again with the rest of the pod (TM-39, MEM-32)."""
    inits = [container("i", memory="2Gi", guaranteed=True)]

    def wanted(cpu: str) -> core_pb2.Pod:
        return pod(container("c", cpu, guaranteed=True), initContainers=inits)

    async with opened(tmp_path, mode=mode, cpuManagerPolicy="none") as node:
        await ask(node, wanted("1"))
        await node.admission.AddContainer(
            ad.AddContainerRequest(pod_uid="a", container_name="c", container_id="id")
        )
        before = await record(node)
        answer = await resize(node, wanted("2"))
        after = await record(node)

    assert answer.verdict == pb.VERDICT_ADMITTED
    assert held(before, "i") == 0
    assert held(after, "i") == booked << 30
    assert held(after, "c") == held(before, "c") == 1 << 30


def held(recorded: pb.AdmissionRecord, name: str) -> int:
    (allocation,) = (a for a in recorded.allocations if a.container == name)
    return sum(block.size for block in allocation.memory)


async def test_devices_stay_without_asking_for_them_again(tmp_path: Path) -> None:
    def wanted(cpu: str) -> core_pb2.Pod:
        one = container("c", cpu)
        for amounts in one["resources"].values():
            amounts[GPU] = "1"
        return pod(one)

    async with opened(tmp_path) as node:
        first = await ask(node, wanted("1"))
        answer = await resize(node, wanted("2"), explain=pb.EXPLAIN_LEVEL_FULL)
        assert await node.faults() == []

    assert answer.verdict == pb.VERDICT_ADMITTED
    assert first.allocations[0].devices
    assert answer.allocations == first.allocations
    assert list(answer.explanation.plugin_calls) == []


async def test_what_was_said_of_its_placement_stays(tmp_path: Path) -> None:
    """A resize that moves nothing places nothing anew."""
    async with opened(tmp_path, cpuManagerPolicy="none") as node:
        await ask(node, sized())
    async with opened(tmp_path, memoryManagerPolicy="None", reservedMemory=[]) as node:
        before = await record(node)
        grown = await resize(node, sized(memory="2Gi"))
        pinned = await record(node)

    assert grown.verdict == pb.VERDICT_ADMITTED
    assert pinned.allocations[0].cpus
    assert list(pinned.problems) == []
    assert pinned.config_generation > before.config_generation


@pytest.mark.parametrize("scope", ["pod", "container"])
async def test_a_pod_that_is_managed_as_a_whole_stays_as_it_is(tmp_path: Path, scope: str) -> None:
    """CPU-78, MEM-T5: asked again, it would take its share twice."""
    gates = {"PodLevelResourceManagers": True, **EXCLUSIVE}

    def whole(cpu: str) -> core_pb2.Pod:
        amounts = {"cpu": cpu, "memory": "4Gi"}
        return pod(
            container("c", "1", guaranteed=True),
            container("d", "1", guaranteed=True),
            resources={"requests": amounts, "limits": amounts},
        )

    async with opened(tmp_path, gates=gates, topologyManagerScope=scope) as node:
        await ask(node, whole("2"))
        before = await record(node)
        answer = await resize(node, whole("4"))
        after = await record(node)

    assert (answer.verdict, answer.reason) == (pb.VERDICT_REJECTED, "Infeasible")
    assert answer.message == MANAGED_AS_WHOLE
    assert after == before


@pytest.mark.parametrize("mode", ["safe", "kubelet"])
async def test_a_pod_with_a_pending_resize_is_shown_with_what_it_has(
    tmp_path: Path, mode: str
) -> None:
    """ADM-6, ALLOC-6, trap 23: it would not fit as it is wanted."""
    async with opened(tmp_path, mode=mode, gates=EXCLUSIVE) as node:
        first = await ask(node, sized("2"))
        before = await record(node)
        answer = await ask(node, sized("12"))
        after = await record(node)
        assert await node.faults() == []

    assert (answer.verdict, answer.resize_pending) == (pb.VERDICT_ADMITTED, True)
    assert answer.allocations == first.allocations
    assert answer.resources == before.resources == after.resources
    assert answer.already_admitted is (mode == "safe")
