"""A new configuration while pods run: in force for new pods, or nothing changed anywhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.unit.process.observed_world import GPU, pod
from tests.unit.process.reloading_world import PROVIDERS, World, running
from tests.unit.process.split_node import split_node

from numalign.config.settings import Service
from numalign.process.reload import Reloader
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import types_pb2 as pb


def cpus(answer: ad.AdmitResponse) -> str:
    return answer.allocations[0].cpus


async def test_from_no_cpu_policy_to_the_static_one(tmp_path: Path) -> None:
    async with running(tmp_path, cpuManagerPolicy="none") as world:
        old = await world.admit("running")
        answer = await world.reload(cpuManagerPolicy="static")
        new = await world.admit("new")
        records = await world.listed()
        status = await world.control.GetStatus(ct.GetStatusRequest())
        await world.agree()

    assert list(answer.applied) == ["cpuManagerPolicy"]
    assert list(answer.needs_restart) == []
    assert cpus(old) == ""
    assert cpus(new) == "1,9"
    assert list(records["running"].problems) == [
        "cpu: container c: not pinned: asks for 2 exclusive CPUs, has none"
    ]
    assert list(records["new"].problems) == []
    assert "the CPU policy is static, it was none" in status.reports
    assert (
        "pod uid-running, container c: not pinned: asks for 2 exclusive CPUs, has none"
        in status.reports
    )


async def test_pods_know_the_configuration_that_placed_them(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.admit("a")
        before = await world.policy()
        await world.reload(topologyManagerPolicy="best-effort", topologyManagerScope="pod")
        await world.admit("b")
        after = await world.policy()
        records = await world.listed()
        status = await world.control.GetStatus(ct.GetStatusRequest())

    assert (before.policy, before.scope, before.config_generation) == (
        "single-numa-node",
        "container",
        1,
    )
    assert (after.policy, after.scope, after.config_generation) == ("best-effort", "pod", 2)
    assert status.config_generation == 2
    assert records["a"].config_generation == 1
    assert records["b"].config_generation == 2


async def test_the_number_counts_over_restarts(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        assert (await world.policy()).config_generation == 1
    async with running(tmp_path) as world:
        assert (await world.policy()).config_generation == 1
    async with running(tmp_path, topologyManagerPolicy="restricted") as world:
        assert (await world.policy()).config_generation == 2
        await world.reload(topologyManagerPolicy="best-effort")
        await world.reload()
        assert (await world.policy()).config_generation == 3


async def test_another_topology_policy_decides_on_new_pods(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        refused = await world.admit("wide", cpu="10", gpu="0")
        await world.reload(topologyManagerPolicy="best-effort")
        admitted = await world.admit("wide", cpu="10", gpu="0")

    assert refused.verdict == pb.VERDICT_REJECTED
    assert admitted.verdict == pb.VERDICT_ADMITTED


async def test_another_strategy_decides_on_new_pods(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        first = await world.admit("a", gpu="0")
        answer = await world.reload(
            numalign={"placement": {"numaAllocationStrategy": "least-allocated"}}
        )
        second = await world.admit("b", gpu="0")
        status = await world.control.GetStatus(ct.GetStatusRequest())

    assert list(answer.applied) == ["numalign.placement"]
    assert list(answer.needs_restart) == []
    assert [one.allocations[0].affinity.mask for one in (first, second)] == [0b01, 0b10]
    assert list(status.placement) == ["numalign.placement.numaAllocationStrategy: least-allocated"]
    assert status.config_generation == 2


async def test_a_switch_of_the_cpu_provider_decides_on_new_pods(tmp_path: Path) -> None:
    options = {"strict-cpu-reservation": "true"}
    async with running(
        tmp_path, cpuManagerPolicyOptions=options, topologyManagerPolicy="none"
    ) as world:
        await world.admit("a", cpu="8", gpu="0")
        answer = await world.reload(numalign={"placement": {"keepSharedCpus": True}})
        refused = await world.admit("b", cpu="6", gpu="0")
        await world.reload(numalign={"placement": {"keepSharedCpus": False}})
        admitted = await world.admit("b", cpu="6", gpu="0")

    assert list(answer.applied) == ["numalign.placement"]
    assert list(answer.needs_restart) == []
    assert refused.reason == "EmptySharedPoolError"
    assert admitted.verdict == pb.VERDICT_ADMITTED


async def test_reserved_cpus_grow_over_free_ones(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        kept = await world.admit("a")
        await world.reload(reservedSystemCPUs="0,8,2,10")
        new = await world.admit("b")
        records = await world.listed()
        await world.agree()

    assert cpus(kept) == "1,9"
    assert records["a"].allocations[0].cpus == "1,9"
    assert list(records["a"].problems) == []
    assert cpus(new) == "3,11"


async def test_reserved_cpus_grow_over_assigned_ones(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.admit("a")
        await world.admit("b")
        watch = world.admission.WatchAssignments(ad.WatchAssignmentsRequest())
        async for event in watch:
            if event.HasField("synced"):
                break
        await world.reload(reservedSystemCPUs="0,1,8,9")
        async for event in watch:
            if event.changed.problems:
                break
        watch.cancel()
        records = await world.listed()
        again = await world.admit("a")
        await world.agree()

    problem = 'cpu: container c: CPUs "1,9": "1,9" reserved now'
    assert event.changed.name == "a"
    assert event.changed.allocations[0].cpus == ""
    assert list(records["a"].problems) == [problem]
    assert list(records["b"].problems) == []
    assert records["b"].allocations[0].cpus == "2,10"
    assert again.already_admitted
    assert list(again.warnings) == [problem]


@pytest.mark.parametrize(
    ("kubelet", "numalign", "why"),
    [
        pytest.param({"topologyManagerPolicy": "no-such"}, {}, "no-such", id="policy"),
        pytest.param(
            {"reservedSystemCPUs": "0,8", "cpuManagerPolicyOptions": {"no-such": "true"}},
            {},
            "no-such",
            id="cpu-option",
        ),
        pytest.param(
            {"reservedMemory": [{"numaNode": 7, "limits": {"memory": "1Gi"}}]},
            {},
            "memory",
            id="memory-node",
        ),
        pytest.param(
            {
                "topologyManagerPolicy": "restricted",
                "memoryManagerPolicy": "Static",
                "reservedMemory": [{"numaNode": 0, "limits": {"memory": "3Gi"}}],
            },
            {},
            "memory",
            id="memory-sum",
        ),
        pytest.param(
            {"topologyManagerPolicy": "restricted"},
            {"devices": [{"resource": "a.b/c", "devices": [{"id": "x", "numa_nodes": [2]}]}]},
            'numalign.devices[0].devices[0].numa_nodes: device "x" is on NUMA node 2',
            id="device-elsewhere",
        ),
    ],
)
async def test_a_wrong_configuration_leaves_everything_as_it_was(
    tmp_path: Path, kubelet: dict[str, Any], numalign: dict[str, Any], why: str
) -> None:
    async with running(tmp_path) as world:
        await world.admit("a")
        books = [await world.state(service) for service in PROVIDERS]
        policy = await world.policy()
        with pytest.raises(aio.AioRpcError) as refused:
            await world.reload(numalign, **kubelet)
        after = [await world.state(service) for service in PROVIDERS]
        policy_after = await world.policy()

    assert refused.value.code() is StatusCode.FAILED_PRECONDITION
    assert why in (refused.value.details() or "")
    assert after == books
    assert policy_after == policy


async def test_what_needs_a_restart_is_named_until_it_is_taken_back(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        first = await world.reload({"compatibility": "kubelet", "queueDepth": 7})
        second = await world.reload({"providerTimeout": "3s"})
        third = await world.reload({"compatibility": "safe"})

    assert list(first.applied) == ["numalign.queueDepth"]
    assert list(first.needs_restart) == ["numalign.compatibility"]
    assert list(second.applied) == ["numalign.providerTimeout"]
    assert list(second.needs_restart) == ["numalign.compatibility"]
    assert list(third.needs_restart) == []


async def test_there_and_back_nothing_waits_for_a_restart(tmp_path: Path) -> None:
    there: dict[str, Any] = {
        "cpuManagerPolicy": "none",
        "memoryManagerPolicy": "None",
        "reservedMemory": None,
        "topologyManagerPolicy": "restricted",
        "topologyManagerScope": "pod",
        "featureGates": {"CPUManagerPolicyAlphaOptions": True},
    }
    numalign = {"queueDepth": 7, "historyLength": 9, "providerTimeout": "3s", "devices": []}
    async with running(tmp_path) as world:
        was = {key: world._document.get(key) for key in there}
        had = {key: world._document["numalign"].get(key) for key in numalign}
        gone = await world.reload(numalign, **there)
        back = await world.reload(
            {**had, "queueDepth": 100, "historyLength": 4096, "providerTimeout": "5s"}, **was
        )
        still = await world.reload()

    assert list(gone.needs_restart) == list(back.needs_restart) == list(still.needs_restart) == []
    assert list(gone.applied) == list(back.applied)
    assert list(still.applied) == []


async def test_a_pod_that_is_refused_again_is_cleaned_up_where_nobody_was_asked(
    tmp_path: Path,
) -> None:
    # Without a policy there are no hints, and the devices are asked for first.
    async with running(tmp_path, topologyManagerPolicy="none") as world:
        world.write({"compatibility": "kubelet"})
        await world.node.close()
        await world.start()
        first = await world.admit("a", cpu="8")
        await world.admission.Reconcile(
            ad.ReconcileRequest(active_pod_uids=["uid-a"], sources_ready=True)
        )
        await world.reload({"devices": []})
        again = await world.admit("a", cpu="8")
        without = pod("b", cpu="8")
        resources = without.spec.containers[0].resources
        del resources.limits[GPU], resources.requests[GPU]
        after = await world.admission.Admit(ad.AdmitRequest(pod=without))

    assert first.verdict == pb.VERDICT_ADMITTED
    assert again.verdict == pb.VERDICT_REJECTED
    assert after.verdict == pb.VERDICT_ADMITTED


async def test_a_provider_that_reloads_alone_is_followed_by_the_record(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write()
    async with split_node(world.read()) as node, asyncio.timeout(60):
        await node.admission.Admit(ad.AdmitRequest(pod=pod("a")))
        watch = node.admission.WatchAssignments(ad.WatchAssignmentsRequest())
        async for event in watch:
            if event.HasField("synced"):
                break
        reloader = Reloader(world.read(), world.read, (node.parts[Service.CPU],))
        world.write(reservedSystemCPUs="0,1,8,9", memoryManagerPolicy="None", reservedMemory=[])
        answer = await reloader.reload()
        async for event in watch:
            if event.changed.problems:
                break
        watch.cancel()

    assert list(answer.applied) == ["cpuManagerPolicy"]
    assert list(answer.needs_restart) == []
    assert event.changed.allocations[0].cpus == ""


async def test_memory_that_was_not_booked_is_named_and_new_pods_book(tmp_path: Path) -> None:
    async with running(tmp_path, memoryManagerPolicy="None", reservedMemory=None) as world:
        await world.admit("old")
        await world.reload(
            memoryManagerPolicy="Static",
            reservedMemory=[{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        )
        new = await world.admit("new")
        records = await world.listed()
        await world.agree()

    assert [block.size for block in new.allocations[0].memory] == [1 << 30]
    assert list(records["old"].problems) == [
        f"memory: container c: not booked: asks for {1 << 30} bytes of memory, has none"
    ]


async def test_admissions_go_on_while_the_configuration_changes(tmp_path: Path) -> None:
    async with running(tmp_path) as world:

        async def churn(name: str) -> int:
            admitted = 0
            for number in range(15):
                answer = await world.admit(f"{name}{number}", cpu="1", gpu="0")
                if answer.verdict == pb.VERDICT_ADMITTED:
                    admitted += 1
                    release = ad.ReleaseRequest(pod_uid=f"uid-{name}{number}")
                    await world.admission.Release(release)
            return admitted

        async def change() -> None:
            for number in range(6):
                policy = ("best-effort", "restricted")[number % 2]
                reserved = ("0,8", "0,1,8,9")[number % 2]
                await world.reload(topologyManagerPolicy=policy, reservedSystemCPUs=reserved)

        kept = await world.admit("kept")
        *admitted, _ = await asyncio.gather(churn("x"), churn("y"), churn("z"), change())
        records = await world.listed()
        await world.agree()

    assert admitted == [15, 15, 15]
    assert records.keys() == {"kept"}
    assert cpus(kept) == "1,9"
    assert list(records["kept"].problems) == ['cpu: container c: CPUs "1,9": "1,9" reserved now']
