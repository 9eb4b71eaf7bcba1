"""Cases of users that a switch decides better than a kubelet, and without it as a kubelet does.

A whole node decides on the pods of each case.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.user_cases import (
    CASES,
    GIB,
    agent_of,
    burstable_pod,
    node_of,
    numa_node,
    pod,
    single_threads,
    with_init,
    with_second,
)

from numalign.model.cpu_set import CpuSet
from numalign.v1 import types_pb2 as pb

SYSFS = Path(__file__).parents[1] / "fixtures" / "sysfs" / "2s-hugepages-1g.tar.gz"
TESTED = {"uc-02", "uc-04", "uc-05", "uc-07", "uc-11", "uc-25", "uc-27", "uc-33", "uc-36", "uc-38"}


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="uc-") as path:
        yield Path(path)


def test_the_cases_are_better_than_a_kubelet() -> None:
    assert {CASES[name]["kind"] for name in TESTED} == {"better-than-kubelet"}


@pytest.mark.parametrize(
    ("strategy", "node_of_a", "b"),
    [
        pytest.param("none", 0, pb.VERDICT_REJECTED, id="as-a-kubelet"),
        pytest.param("least-allocated", 0, pb.VERDICT_REJECTED, id="least-allocated"),
        pytest.param("most-allocated", 1, pb.VERDICT_ADMITTED, id="most-allocated"),
    ],
)
@pytest.mark.parametrize("scope", ["container", "pod"])
async def test_uc_33_the_fuller_node_that_fits(
    strategy: str, node_of_a: int, b: pb.Verdict.ValueType, scope: str, directory: Path
) -> None:
    nodes = [numa_node(n, single_threads(16 * n, 16)) for n in range(2)]
    machine = node_of(nodes, policy="single-numa-node", scope=scope, reserved="0")
    async with agent_of("uc-33", machine, directory) as agent:
        for name, cpus in (("on-0", "3"), ("fills-0", "12"), ("on-1", "8")):
            held = await agent.admit(pod(name, cpu=cpus))
            assert held.verdict == pb.VERDICT_ADMITTED
        await agent.release("fills-0")
    placement = {"numaAllocationStrategy": strategy}
    async with agent_of("uc-33", machine, directory, placement=placement) as agent:
        first = await agent.admit(pod("a", cpu="4"))
        second = await agent.admit(pod("b", cpu="12"))

    # 12 of 15 and 8 of 16 were free.
    assert first.allocations[0].affinity.mask == 1 << node_of_a
    assert second.verdict == b
    if b == pb.VERDICT_ADMITTED:
        assert second.allocations[0].affinity.mask == 0b01
        assert "the narrowest, then most allocated, of 2 sets" in first.explanation.summary


@pytest.mark.parametrize(
    ("keep", "verdict", "shared"),
    [
        pytest.param(False, pb.VERDICT_ADMITTED, "", id="as-a-kubelet"),
        pytest.param(True, pb.VERDICT_REJECTED, "1-3", id="kept"),
    ],
)
async def test_uc_38_the_last_shared_cpu(
    keep: bool, verdict: pb.Verdict.ValueType, shared: str, directory: Path
) -> None:
    options = {"strict-cpu-reservation": "true"}
    machine = node_of([numa_node(0, single_threads(0, 4))], reserved="0", options=options)
    async with agent_of("uc-38", machine, directory, placement={"keepSharedCpus": keep}) as agent:
        burstable = await agent.admit(burstable_pod("shared", cpu="100m"))
        decision = await agent.admit(pod("x", cpu="3"))
        left = await agent.shared_cpus()
        smaller = await agent.admit(pod("y", cpu="2"))

    assert burstable.verdict == pb.VERDICT_ADMITTED
    assert decision.verdict == verdict
    assert left == shared
    if not keep:
        return
    assert decision.reason == "EmptySharedPoolError"
    assert decision.message == (
        "would leave no CPU to containers without exclusive ones: all 3 shared CPUs are asked "
        "for, and one of them has to stay (numalign.placement.keepSharedCpus)"
    )
    assert "What would have fitted: cpu of at most 2" in decision.explanation.summary
    assert smaller.verdict == pb.VERDICT_ADMITTED


@pytest.mark.parametrize(
    ("reuse", "app", "c"),
    [
        pytest.param(False, "2-3,6-7", pb.VERDICT_REJECTED, id="as-a-kubelet"),
        pytest.param(True, "2-3,5-6", pb.VERDICT_ADMITTED, id="reused"),
    ],
)
async def test_uc_05_an_app_takes_what_its_init_container_had(
    reuse: bool, app: str, c: pb.Verdict.ValueType, directory: Path
) -> None:
    machine = node_of([numa_node(0, [[n, n + 4] for n in range(4)])], reserved="0,4")
    async with agent_of("uc-05", machine, directory, placement={"reuseInitCpus": reuse}) as agent:
        first = await agent.admit(pod("a", cpu="1"))
        second = await agent.admit(with_init(pod("b", cpu="4"), cpu="1"))
        third = await agent.admit(pod("c", cpu="1"))

    assert first.allocations[0].cpus == "1"
    assert [one.cpus for one in second.allocations] == ["5", app]
    assert third.verdict == c
    if reuse:
        assert third.allocations[0].cpus == "7"


@pytest.mark.parametrize(
    ("few", "given"),
    [
        pytest.param(False, "3,5,11-13", id="as-a-kubelet"),
        pytest.param(True, "5,7,12-13,15", id="one-cache"),
    ],
)
async def test_uc_25_whole_cores_of_one_cache(few: bool, given: str, directory: Path) -> None:
    node = numa_node(0, [[n, n + 8] for n in range(8)])
    for core in node["cores"]:
        core["uncore_cache_id"] = core["id"] // 4
    options = {"prefer-align-cpus-by-uncorecache": "true"}
    # Of the first cache 3 and 11 are free, of the second 5, 7 and 12 to 15.
    machine = node_of([node], reserved="0-2,4,6,8-10", options=options)
    placement = {"fewUncoreCaches": few}
    async with agent_of("uc-25", machine, directory, placement=placement) as agent:
        decision = await agent.admit(pod("p", cpu="5"))

    assert decision.allocations[0].cpus == given


@pytest.mark.parametrize(
    ("mode", "verdict"),
    [
        pytest.param("ignore", pb.VERDICT_ADMITTED, id="as-a-kubelet"),
        pytest.param("refuse", pb.VERDICT_REJECTED, id="refused"),
        pytest.param("defer", pb.VERDICT_DEFERRED, id="not-yet"),
    ],
)
@pytest.mark.parametrize("policy", ["none", "best-effort", "single-numa-node"])
async def test_uc_36_huge_pages_that_the_kernel_does_not_have(
    mode: str, verdict: pb.Verdict.ValueType, policy: str, directory: Path
) -> None:
    root = directory / "root"
    with tarfile.open(SYSFS) as archive:
        archive.extractall(root, filter="fully_trusted")
    nodes = root / "sys/devices/system/node"
    write(nodes / "node0/meminfo", "Node 0 MemTotal: 33554432 kB\n")
    for node, pool, free in ((0, 8192, 1536), (1, 0, 0)):
        pages = nodes / f"node{node}/hugepages/hugepages-2048kB"
        write(pages / "nr_hugepages", f"{pool}\n")
        write(pages / "free_hugepages", f"{free}\n")
    machine = node_of([numa_node(0, [])], policy=policy, reserved="0", memory=True)
    source, placement = {"root": str(root)}, {"kernelHugePages": mode}
    which = pod("p", cpu="1", memory="1Gi", hugepages_2Mi="8Gi")
    async with agent_of("uc-36", machine, directory, machine=source, placement=placement) as agent:
        decision = await agent.admit(which)
        write(nodes / "node0/hugepages/hugepages-2048kB/free_hugepages", "8192\n")
        later = await agent.admit(which)

    assert decision.verdict == verdict
    assert later.verdict == pb.VERDICT_ADMITTED
    if verdict != pb.VERDICT_ADMITTED:
        assert decision.reason == "HugePagesInUse"
        assert (
            "8Gi asked for, 3Gi free in the kernel, at least 13Gi used outside the books"
            in decision.message
        )


def write(path: Path, text: str) -> None:
    path.chmod(0o644)
    path.write_text(text)


@pytest.mark.parametrize(
    ("few", "whole_socket"),
    [pytest.param(False, False, id="as-a-kubelet"), pytest.param(True, True, id="one-socket")],
)
async def test_uc_27_spread_within_a_socket(few: bool, whole_socket: bool, directory: Path) -> None:
    nodes = []
    for n in range(8):
        node = numa_node(n, single_threads(32 * n, 32))
        nodes.append({**node, "cores": [{**core, "socket_id": n // 4} for core in node["cores"]]})
    options = {"distribute-cpus-across-numa": "true", "align-by-socket": "true"}
    machine = node_of(nodes, reserved="126-127,254-255", options=options)
    gates = {"CPUManagerPolicyAlphaOptions": True}
    placement = {"fewSockets": few}
    async with agent_of("uc-27", machine, directory, gates, placement=placement) as agent:
        decision = await agent.admit(pod("p", cpu="120"))

    given = CpuSet.parse(decision.allocations[0].cpus)
    by_node = [sum(1 for cpu in given if cpu // 32 == n) for n in range(8)]
    assert sum(by_node) == 120
    assert (by_node == [30, 30, 30, 30, 0, 0, 0, 0]) is whole_socket


@pytest.mark.parametrize(
    ("first", "cpu_node"),
    [pytest.param(False, None, id="as-a-kubelet"), pytest.param(True, 1, id="cpus-together")],
)
async def test_uc_07_a_device_away_from_free_cpus(
    first: bool, cpu_node: int | None, directory: Path
) -> None:
    nodes = [numa_node(n, [[c, c + 40] for c in range(20 * n, 20 * n + 20)]) for n in range(2)]
    vfs = [{"id": f"vf{n}", "numa_nodes": [0], "healthy": True} for n in range(8)]
    machine = node_of(nodes, policy="best-effort", reserved="0,1,40,41")
    machine["devices"] = [{"resource": "example.com/vf", "devices": vfs}]
    placement = {"cpuAndMemoryFirst": first}
    asked = {"cpu": "32", "example.com/vf": "1"}
    which = [pod(name, None, **asked) for name in ("a", "b")]
    async with agent_of("uc-07", machine, directory, placement=placement) as agent:
        one, two = [await agent.admit(each) for each in which]

    assert one.allocations[0].affinity.mask == 0b01
    assert not one.warnings
    (given,) = two.allocations
    on_nodes = {cpu % 40 // 20 for cpu in CpuSet.parse(given.cpus)}
    assert on_nodes == ({0, 1} if cpu_node is None else {cpu_node})
    assert [device.by_numa_node[0].numa_node for device in given.devices] == [0]
    assert list(two.warnings) == (
        ['for container "c" example.com/vf may come from other NUMA nodes than CPUs and memory']
        if first
        else []
    )


WHOLE = "decided in scope pod, since scope container would have refused it"


@pytest.mark.parametrize("streamed", [False, True], ids=["alone", "in-a-stream"])
@pytest.mark.parametrize("retry", [False, True], ids=["as-a-kubelet", "as-a-whole"])
async def test_uc_02_an_init_container_with_the_app_in_view(
    retry: bool, streamed: bool, directory: Path
) -> None:
    nodes = [numa_node(n, single_threads(16 * n, 16)) for n in range(2)]
    machine = node_of(nodes, policy="single-numa-node", reserved="0-2")
    which = with_init(pod("p", cpu="14"), cpu="1")
    placement = {"retryInPodScope": retry}
    async with agent_of("uc-02", machine, directory, placement=placement) as agent:
        tried = await agent.dry_run(which)
        if streamed:
            before, decision, after = await agent.admit_in_one_stream(
                pod("small", cpu="1"), which, pod("large", cpu="12")
            )
            assert before.allocations[0].affinity.mask == 0b01
            assert after.verdict == pb.VERDICT_ADMITTED
        else:
            decision = await agent.admit(which)
        again = await agent.admit(which)
        shared = await agent.shared_cpus()
    async with agent_of("uc-02", machine, directory, placement=placement) as agent:
        restarted = await agent.admit(which)
        assert await agent.shared_cpus() == shared

    assert tried.verdict == decision.verdict
    if not retry:
        assert decision.verdict == pb.VERDICT_REJECTED
        return
    assert decision.verdict == pb.VERDICT_ADMITTED
    assert [one.affinity.mask for one in decision.allocations] == [0b10, 0b10]
    assert all(min(CpuSet.parse(one.cpus)) >= 16 for one in decision.allocations)
    (warning,) = decision.warnings
    assert warning.startswith(f"{WHOLE} (TopologyAffinityError: ")
    assert "in pod scope" in decision.explanation.summary
    assert again.already_admitted
    assert again.allocations == restarted.allocations == decision.allocations


@pytest.mark.parametrize("retry", [False, True], ids=["as-a-kubelet", "as-a-whole"])
async def test_uc_04_an_init_container_that_would_fit_elsewhere(
    retry: bool, directory: Path
) -> None:
    nodes = [
        numa_node(n, [[c, c + 32] for c in range(16 * n, 16 * n + 16)], memory_bytes=125 * GIB)
        for n in range(2)
    ]
    machine = node_of(nodes, policy="single-numa-node", reserved="0")
    placement = {"retryInPodScope": retry}
    async with agent_of("uc-04", machine, directory, placement=placement) as agent:
        first = await agent.admit(pod("a", cpu="27"))
        decision = await agent.admit(
            with_init(pod("b", cpu="26", memory="32Gi"), cpu="1", memory="1Gi")
        )

    assert first.allocations[0].affinity.mask == 0b01
    if retry:
        assert [one.affinity.mask for one in decision.allocations] == [0b10, 0b10]
    else:
        assert decision.reason == "TopologyAffinityError"


@pytest.mark.parametrize("streamed", [False, True], ids=["alone", "in-a-stream"])
@pytest.mark.parametrize("retry", [False, True], ids=["as-a-kubelet", "as-a-whole"])
async def test_uc_11_memory_of_a_pod_in_one_group(
    retry: bool, streamed: bool, directory: Path
) -> None:
    nodes = [numa_node(n, single_threads(16 * n, 16), memory_bytes=65 * GIB) for n in range(2)]
    machine = node_of(nodes, policy="best-effort", reserved="0", memory=True)
    gpus = [{"id": f"gpu{n}", "numa_nodes": [n], "healthy": True} for n in range(2)]
    machine["devices"] = [{"resource": "example.com/gpu", "devices": gpus}]
    asked = {"cpu": "20", "memory": "100Gi", "example.com/gpu": "2"}
    which = with_second(pod("p", cpu="1", memory="4Gi"), pod("o", None, **asked))
    placement = {"retryInPodScope": retry}
    async with agent_of("uc-11", machine, directory, placement=placement) as agent:
        if streamed:
            (decision,) = await agent.admit_in_one_stream(which)
        else:
            decision = await agent.admit(which)

    if not retry:
        assert decision.reason == "UnexpectedAdmissionError"
        return
    assert decision.verdict == pb.VERDICT_ADMITTED
    memory = [list(block.numa_nodes) for one in decision.allocations for block in one.memory]
    assert memory == [[0, 1], [0, 1]]
    (warning,) = decision.warnings
    assert warning.startswith(f"{WHOLE} (UnexpectedAdmissionError: ")


@pytest.mark.parametrize("streamed", [False, True], ids=["alone", "in-a-stream"])
async def test_what_both_scopes_refuse_has_the_reason_of_the_first_and_takes_nothing(
    streamed: bool, directory: Path
) -> None:
    nodes = [numa_node(n, single_threads(16 * n, 16)) for n in range(2)]
    machine = node_of(nodes, policy="single-numa-node", reserved="0-2")
    too_much = with_init(pod("p", cpu="17"), cpu="1")
    answers = []
    for retry in (False, True):
        placement = {"retryInPodScope": retry}
        where = directory / str(retry)
        where.mkdir()
        async with agent_of("uc-02", machine, where, placement=placement) as agent:
            if streamed:
                refused, fits = await agent.admit_in_one_stream(too_much, pod("q", cpu="16"))
            else:
                refused = await agent.admit(too_much)
                fits = await agent.admit(pod("q", cpu="16"))
            answers.append((refused.reason, refused.message, refused.explanation.summary))
            assert fits.verdict == pb.VERDICT_ADMITTED
            assert await agent.shared_cpus() == "0-15"

    assert answers[0] == answers[1]
