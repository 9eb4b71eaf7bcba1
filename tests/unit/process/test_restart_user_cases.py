"""Restarts that users of the kubelet stumbled over, on a whole node: nothing is lost or refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.integration.books import faults_of
from tests.unit.process.observed_world import GPU

from numalign.config.loader import load_settings
from numalign.config.settings import Service
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json
from numalign.model.cpu_set import CpuSet
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc
from numalign.v1 import types_pb2 as pb

GIB = 1 << 30
"""A gibibyte."""


def node_of(id_: int, memory: int, *threads: list[int], socket: int = 0) -> dict[str, Any]:
    """A NUMA node with a core for each list of threads."""
    cores = [{"id": each[0], "socket_id": socket, "threads": each} for each in threads]
    return {"id": id_, "memory_bytes": memory, "cores": cores}


def singles(first: int, count: int) -> list[list[int]]:
    return [[cpu] for cpu in range(first, first + count)]


class Running:
    """A node that runs, until the next restart."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.admission = ad_grpc.AdmissionStub(node.channel(Service.ADMISSION))

    @property
    def reports(self) -> list[str]:
        return [report for part in self.node.parts for report in part.reports()]

    async def admit(self, pod: core_pb2.Pod) -> ad.AdmitResponse:
        answer: ad.AdmitResponse = await self.admission.Admit(ad.AdmitRequest(pod=pod))
        assert answer.verdict == pb.VERDICT_ADMITTED, answer.message
        return answer

    async def records(self) -> dict[str, pb.AdmissionRecord]:
        listing = await self.admission.ListAdmissions(ad.ListAdmissionsRequest())
        return {record.name: record for record in listing.admissions}

    async def state(self, service: Service) -> hp.GetStateResponse:
        stub = hp_grpc.HintProviderStub(self.node.channel(service))
        return await stub.GetState(hp.GetStateRequest())

    async def faults(self) -> list[str]:
        listing = await self.admission.ListAdmissions(ad.ListAdmissionsRequest())
        services = (Service.CPU, Service.MEMORY, Service.DEVICE)
        states = [await self.state(service) for service in services]
        # Under the policy none the CPU provider keeps no books (CPU-31).
        return faults_of(listing, [state for state in states if state.cpu.policy != "none"])


@asynccontextmanager
async def started(
    directory: Path,
    nodes: list[dict[str, Any]],
    devices: list[dict[str, Any]] | None = None,
    reservation: dict[str, str] | None = None,
    **kubelet: Any,
) -> AsyncIterator[Running]:
    """A node over the state that the last one left; everything it does by itself is done."""
    for node in nodes:
        node["distances"] = [10 if other is node else 20 for other in nodes]
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        **kubelet,
        "numalign": {
            "machine": {"numa_nodes": nodes},
            "stateDirectory": str(directory / "state"),
            "runtimeDirectory": str(directory / "run"),
            "devices": devices or [],
            "nodeAllocatableReservation": reservation or {},
        },
    }
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(document))
    running = Running(await Node.open(load_settings(path, {}, False)))
    try:
        await running.node.serving()
        probe = pod_of("probe", {"c": {}})
        await running.admission.Admit(ad.AdmitRequest(pod=probe, dry_run=True))
        yield running
    finally:
        await running.node.close()


def pod_of(
    name: str,
    containers: dict[str, dict[str, str]],
    init: dict[str, dict[str, str]] | None = None,
    level: dict[str, str] | None = None,
) -> core_pb2.Pod:
    """A pod whose containers' limits are their requests."""

    def listed(of: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
        return [
            {"name": each, "resources": {"limits": amounts, "requests": amounts}}
            for each, amounts in of.items()
        ]

    spec: dict[str, Any] = {"containers": listed(containers)}
    if init:
        spec["initContainers"] = listed(init)
    if level:
        spec["resources"] = {"limits": level, "requests": level}
    return pod_from_json(
        {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}
    )


STATIC_MEMORY: dict[str, Any] = {
    "topologyManagerPolicy": "best-effort",
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
    "reservation": {"memory": "1Gi"},
}


async def test_uc_15_books_add_up_whatever_the_order_of_past_events(tmp_path: Path) -> None:
    def machine() -> list[dict[str, Any]]:
        return [node_of(n, 220 * GIB, *singles(4 * n, 4), socket=n) for n in range(2)]

    def pod(name: str, memory: str) -> core_pb2.Pod:
        return pod_of(name, {"c": {"cpu": "1", "memory": memory}})

    async with started(tmp_path, machine(), **STATIC_MEMORY) as node:
        await node.admit(pod("p1", "240Gi"))
        await node.admit(pod("p2", "20Gi"))
        await node.admission.Release(ad.ReleaseRequest(pod_uid="p2"))
        await node.admit(pod("p3", "10Gi"))
        before = await node.records()
    async with started(tmp_path, machine(), **STATIC_MEMORY) as node:
        after = await node.records()
        reports = node.reports
        faults = await node.faults()

    assert after == before
    assert after.keys() == {"p1", "p3"}
    assert reports == []
    assert faults == []


async def test_uc_16_memory_that_moved_between_nodes_is_named_and_no_more(tmp_path: Path) -> None:
    recorded, rebooted = 135233794048, 135277490176
    drift = rebooted - recorded

    def machine(third: int, others: int) -> list[dict[str, Any]]:
        sizes = (others, others, third)
        return [node_of(n, sizes[n], *singles(4 * n, 4), socket=n) for n in range(3)]

    async with started(tmp_path, machine(recorded, recorded), **STATIC_MEMORY) as node:
        await node.admit(pod_of("p", {"c": {"cpu": "1", "memory": "8Gi"}}))
        before = await node.records()
    others = recorded - drift // 2
    async with started(tmp_path, machine(rebooted, others), **STATIC_MEMORY) as node:
        after = await node.records()
        reports = node.reports
        state = await node.state(Service.MEMORY)
        faults = await node.faults()

    assert after == before
    assert [report.split(":")[0] for report in reports] == [
        f"NUMA node {n}, memory" for n in range(3)
    ]
    assert f"total {recorded} is now {rebooted} bytes" in reports[2]
    assert list(state.reports) == reports
    assert faults == []


async def test_uc_16_only_the_assignment_that_no_longer_fits_is_flagged(tmp_path: Path) -> None:
    def machine(second: int) -> list[dict[str, Any]]:
        sizes = (32 * GIB, second)
        return [node_of(n, sizes[n], *singles(4 * n, 4), socket=n) for n in range(2)]

    def pod(name: str, memory: str) -> core_pb2.Pod:
        return pod_of(name, {"c": {"cpu": "1", "memory": memory}})

    settings = {**STATIC_MEMORY, "topologyManagerPolicy": "single-numa-node"}
    async with started(tmp_path, machine(32 * GIB), **settings) as node:
        await node.admit(pod("small", "28Gi"))
        await node.admit(pod("large", "30Gi"))
    async with started(tmp_path, machine(16 * GIB), **settings) as node:
        records = await node.records()
        again = await node.admit(pod("large", "30Gi"))
        faults = await node.faults()

    problem = (
        f"memory: container c: {30 * GIB} bytes of memory: {30 * GIB} bytes of memory on NUMA "
        f"nodes 1 are needed and {16 * GIB} are free"
    )
    assert list(records["small"].problems) == []
    assert records["small"].allocations[0].memory[0].size == 28 * GIB
    assert list(records["large"].problems) == [problem]
    assert list(records["large"].allocations[0].memory) == []
    assert again.already_admitted
    assert list(again.warnings) == [problem]
    assert faults == []


async def test_uc_18_from_none_to_static_without_a_manual_step(tmp_path: Path) -> None:
    def machine() -> list[dict[str, Any]]:
        return [node_of(n, 32 * GIB, *singles(8 * n, 8), socket=n) for n in range(2)]

    def pod(name: str) -> core_pb2.Pod:
        return pod_of(name, {"c": {"cpu": "2", "memory": "1Gi"}})

    async with started(tmp_path, machine(), reservedSystemCPUs="0,8") as node:
        await node.admit(pod("running"))
    async with started(
        tmp_path, machine(), reservedSystemCPUs="0,8", cpuManagerPolicy="static"
    ) as node:
        new = await node.admit(pod("new"))
        records = await node.records()
        reports = node.reports
        faults = await node.faults()

    assert list(records["running"].problems) == [
        "cpu: container c: not pinned: asks for 2 exclusive CPUs, has none"
    ]
    assert records["running"].config_generation == 1
    assert records["new"].config_generation == 2
    assert len(CpuSet.parse(new.allocations[0].cpus)) == 2
    assert "the CPU policy is static, it was none" in reports
    assert faults == []


async def test_uc_19_a_pod_with_resources_of_its_own_stays_where_it_is(tmp_path: Path) -> None:
    def machine(cpus: int) -> list[dict[str, Any]]:
        return [node_of(0, 32 * GIB, *singles(0, cpus))]

    settings: dict[str, Any] = {
        "topologyManagerPolicy": "restricted",
        "topologyManagerScope": "pod",
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0",
        "featureGates": {"PodLevelResources": True, "PodLevelResourceManagers": True},
    }
    pod = pod_of("p", {"c": {"cpu": "2", "memory": "1Gi"}}, level={"cpu": "2", "memory": "1Gi"})
    async with started(tmp_path, machine(4), **settings) as node:
        await node.admit(pod)
        before = (await node.state(Service.CPU)).cpu
    async with started(tmp_path, machine(6), **settings) as node:
        again = await node.admit(pod)
        after = (await node.state(Service.CPU)).cpu

    assert [each.cpus for each in before.pods] == ["1-2"]
    assert again.already_admitted
    assert again.pod_allocation.cpus == "1-2"
    assert after.pods == before.pods
    assert after.assignments == before.assignments
    assert after.default_cpus == "0,3-5"


async def test_uc_20_a_running_pod_outlives_a_plugin_that_is_late(tmp_path: Path) -> None:
    def machine() -> list[dict[str, Any]]:
        return [node_of(n, 32 * GIB, *singles(4 * n, 4), socket=n) for n in range(2)]

    def devices(plugin: str) -> list[dict[str, Any]]:
        listed = [{"id": f"g{n}", "numa_nodes": [1]} for n in range(2)]
        return [{"resource": GPU, "devices": listed, "plugin": plugin}]

    pod = pod_of("p", {"app": {GPU: "1"}}, init={"i": {GPU: "1"}})
    settings: dict[str, Any] = {"topologyManagerPolicy": "restricted"}
    async with started(tmp_path, machine(), devices("registered"), **settings) as node:
        first = await node.admit(pod)
        for name in ("i", "app"):
            await node.admission.AddContainer(
                ad.AddContainerRequest(pod_uid="p", container_name=name, container_id=f"id-{name}")
            )
        before = await node.records()
    async with started(tmp_path, machine(), devices("absent"), **settings) as node:
        again = await node.admit(pod)
        records = await node.records()
        faults = await node.faults()

    assert again.already_admitted
    assert again.allocations == first.allocations
    assert list(again.warnings) == []
    assert records == before
    assert faults == []


async def test_uc_23_reserved_and_offline_cpus_are_never_given_out(tmp_path: Path) -> None:
    def machine() -> list[dict[str, Any]]:
        # CPU 95 is offline: its core has one thread.
        cores = [[cpu, cpu + 48] if cpu != 47 else [cpu] for cpu in range(48)]
        return [node_of(0, 64 * GIB, *cores[:24]), node_of(1, 64 * GIB, *cores[24:], socket=1)]

    settings: dict[str, Any] = {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "24,25,47,72",
    }
    async with started(tmp_path, machine(), **settings) as node:
        answer = await node.admit(pod_of("p", {"c": {"cpu": "20", "memory": "1Gi"}}))
        before = await node.records()
    async with started(tmp_path, machine(), **settings) as node:
        after = await node.records()
        reports = node.reports
        faults = await node.faults()

    cpus = CpuSet.parse(answer.allocations[0].cpus)
    assert len(cpus) == 20
    assert cpus.isdisjoint(CpuSet.parse("24,25,47,72,95"))
    assert after == before
    assert reports == []
    assert faults == []
