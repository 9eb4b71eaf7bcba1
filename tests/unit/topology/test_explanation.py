"""Explanations of the user cases and of each kind of refusal, over the real engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.topology.explain_world import (
    GPU,
    NIC,
    Explained,
    Node,
    container,
    gpus,
    machine,
    pod,
)

from numalign.model.machine import Core, Machine, NumaNode
from numalign.model.pod import Pod
from numalign.model.settings import StaticResource


def uc_01() -> Explained:
    node = Node(machine(6, 6, 6), "restricted", reserved="0")
    for number, uid in enumerate("abc"):
        node.hold(uid, 2, number)
    return node.ask(pod("p", container(cpu=5)))


def uc_02() -> Explained:
    node = Node(machine(16, 16), "single-numa-node", reserved="0-2")
    return node.ask(pod("p", container("i", kind="init", cpu=1), container(cpu=14)))


def uc_04() -> Explained:
    node = Node(machine(32, 32, threads=2), "single-numa-node", reserved="0")
    node.hold("a", 23, 0)
    return node.ask(pod("b", container("i", kind="init", cpu=1), container(cpu=26)))


def uc_09() -> Explained:
    nodes = tuple(
        NumaNode(
            id=n, cores=tuple(Core(id=c, socket_id=n, threads=(c, c + 6)) for c in range(n, 6, 2))
        )
        for n in range(2)
    )
    node = Node(Machine(numa_nodes=nodes), "none", reserved="1,6", cpu_options=["full-pcpus-only"])
    return node.ask(pod("p", container(cpu=10)))


def uc_13(policy: str = "restricted") -> Explained:
    node = Node(machine(8, 8, gib=2, huge_2mi=10), policy, reserved="0", memory="Static")
    node.hold("pod1", 2, 0, 1, memory="24Mi", huge="24Mi")
    return node.ask(pod("pod2", container(cpu=2, memory="24Mi", hugepages_2Mi="16Mi")))


def uc_34() -> Explained:
    node = Node(machine(14, 14), "single-numa-node", reserved="0")
    node.hold("a", 7, 0)
    node.hold("b", 8, 1)
    return node.ask(pod("replica", container(cpu=8)))


def two_of_four(policy: str = "restricted", scope: str = "container") -> Node:
    return Node(
        machine(4, 4, gib=4),
        policy,
        scope=scope,
        reserved="0",
        memory="Static",
        devices=[gpus(GPU, 1, 2)],
    )


def only_cpus() -> Node:
    return Node(machine(4, 4), "single-numa-node", reserved="0")


def clash() -> Explained:
    node = two_of_four()
    node.hold("z", 3, 1)
    return node.ask(pod("q", container(cpu=2, gpu=2, memory="1Gi")))


def unhealthy() -> Explained:
    well, ill = gpus(GPU, 2).devices
    devices = StaticResource(resource=GPU, devices=(well, replace(ill, healthy=False)))
    node = Node(machine(4, 4), "single-numa-node", reserved="0", devices=[devices])
    return node.ask(pod("q", container(gpu=2)))


def held_by_the_pod() -> Explained:
    node = Node(machine(8), "restricted", reserved="0")
    return node.ask(pod("q", container("one", cpu=4), container("two", cpu=4)))


def whole_pod() -> Explained:
    node = two_of_four("single-numa-node", "pod")
    return node.ask(pod("q", container("one", cpu=3), container("two", cpu=2)))


def broken_plugin() -> Explained:
    broken = StaticResource(
        resource=NIC, devices=gpus(NIC, 2).devices, allocate_error="cable is cut"
    )
    node = Node(machine(4), "restricted", reserved="0", devices=[gpus(GPU, 1), broken])
    return node.ask(pod("q", container(gpu=1, nic=1)))


def memory_nowhere() -> Explained:
    node = two_of_four()
    node.hold("z", 3, 1)
    return node.ask(pod("q", container(cpu=2, memory="100Gi")))


@pytest.mark.parametrize(
    ("case", "container_name", "resources", "why", "would_fit"),
    [
        pytest.param(
            uc_01,
            "app",
            ["cpu"],
            "cpu asked 5; NUMA nodes 0, 1 and 2 have 3, 4 and 4 free of 6: no single node can hold "
            "it now, though an empty one could, so the best mask {0,1} is not preferred and policy "
            "restricted refuses it",
            "cpu of at most 4 on NUMA node 1",
            id="uc-01",
        ),
        pytest.param(
            uc_02,
            "app",
            ["cpu"],
            "cpu asked 14; NUMA nodes 0 and 1 have 12 and 16 free of 16: NUMA node 1 has enough "
            'free, but init container "i" of the same pod holds 1 on NUMA node 0, which has to be '
            "used again, so every set of nodes must contain NUMA node 0: the earlier placement is "
            "the cause, so policy single-numa-node refuses it",
            'cpu of at most 13 on NUMA node 0, within this: init containers leave CPUs "3" to be '
            "used again: their NUMA nodes must be in the set",
            id="uc-02",
        ),
        pytest.param(
            uc_09,
            "app",
            ["cpu"],
            "provider cpu could not allocate cpu: SMT Alignment Error: not enough free physical "
            "CPUs: available physical CPUs = 8, requested CPUs = 10, CPUs per core = 2. cpu asked "
            "10; NUMA nodes 0 and 1 have 5 and 5 free of 6 (full-pcpus-only: multiples of 2 CPUs, "
            "8 are free on whole cores)",
            "cpu of at most 9, within this: full-pcpus-only: multiples of 2 CPUs, 8 are free on "
            "whole cores",
            id="uc-09",
        ),
        pytest.param(
            uc_13,
            "app",
            ["hugepages-2Mi", "memory"],
            "hugepages-2Mi asked 16Mi; NUMA nodes 0 and 1 have 0 and 16Mi free of 20Mi: NUMA node "
            "1 has enough free, but NUMA nodes in use as a group can only be used together: 0,1. "
            "memory asked 24Mi; NUMA nodes 0 and 1 have 1.87Gi and 1.9Gi free of 2Gi: likewise, so "
            "the best mask {0,1} is not preferred and policy restricted refuses it",
            "",
            id="uc-13",
        ),
        pytest.param(
            uc_34,
            "app",
            ["cpu"],
            "cpu asked 8; NUMA nodes 0 and 1 have 6 and 6 free of 14: no single node can hold it "
            "now, though an empty one could, so policy single-numa-node refuses it",
            "cpu of at most 6 on NUMA node 0",
            id="uc-34",
        ),
        pytest.param(
            clash,
            "app",
            [GPU, "cpu"],
            "example.com/gpu asked 2; NUMA nodes 0 and 1 have 1 of 1 and 2 of 2 free. cpu asked 2; "
            "NUMA nodes 0 and 1 have 3 and 1 free of 4. example.com/gpu and cpu have no set of "
            "NUMA nodes in common (example.com/gpu on {1}; cpu on {0}), so the best mask {0} is "
            "not preferred and policy restricted refuses it",
            "example.com/gpu of at most 1 on NUMA node 0",
            id="no-common-mask",
        ),
        pytest.param(
            lambda: two_of_four().ask(pod("q", container(gpu=4))),
            "app",
            [GPU],
            "example.com/gpu asked 4; NUMA nodes 0 and 1 have 1 of 1 and 2 of 2 free: that is more "
            "than this machine can ever give, so the best mask {0} is not preferred and policy "
            "restricted refuses it",
            "example.com/gpu of at most 2 on NUMA node 1",
            id="more-than-there-is",
        ),
        pytest.param(
            lambda: only_cpus().ask(pod("q", container(cpu=6))),
            "app",
            ["cpu"],
            "cpu asked 6; NUMA nodes 0 and 1 have 3 and 4 free of 4: even an empty machine needs 2 "
            "nodes for it, and single-numa-node takes one, so policy single-numa-node refuses it",
            "cpu of at most 4 on NUMA node 1",
            id="too-large-for-the-policy",
        ),
        pytest.param(
            unhealthy,
            "app",
            [GPU],
            "example.com/gpu asked 2; NUMA node 0 has 1 free of 2: all nodes together have too "
            "little free (1 device is unhealthy and cannot be taken), so policy single-numa-node "
            "refuses it",
            "example.com/gpu of at most 1 on NUMA node 0",
            id="unhealthy",
        ),
        pytest.param(
            held_by_the_pod,
            "two",
            ["cpu"],
            "cpu asked 4; NUMA node 0 has 3 free of 8: all nodes together have too little free; "
            'container "one" of the same pod holds 4 on NUMA node 0, which is the cause, so the '
            "best mask {0} is not preferred and policy restricted refuses it",
            "cpu of at most 3 on NUMA node 0",
            id="held-by-the-same-pod",
        ),
        pytest.param(
            whole_pod,
            "",
            ["cpu"],
            "cpu asked 5; NUMA nodes 0 and 1 have 3 and 4 free of 4: even an empty machine needs 2 "
            "nodes for it, and single-numa-node takes one, so policy single-numa-node refuses it",
            "cpu of at most 4 on NUMA node 1",
            id="pod-scope",
        ),
        pytest.param(
            broken_plugin,
            "app",
            [NIC],
            f"the device plugin of {NIC} could not allocate {NIC}: cable is cut. {NIC} asked 1; "
            "NUMA node 0 has 2 free of 2",
            "",
            id="plugin-error",
        ),
        pytest.param(
            memory_nowhere,
            "app",
            ["memory"],
            "provider memory could not allocate memory: [memorymanager] failed to find NUMA nodes "
            "to extend the current topology hint. memory asked 100Gi; NUMA nodes 0 and 1 have "
            "3.9Gi and 3.9Gi free of 4Gi",
            "memory of at most 3.9Gi on NUMA node 0",
            id="memory-nowhere",
        ),
    ],
)
def test_what_stood_in_the_way(
    case: Callable[[], Explained],
    container_name: str,
    resources: list[str],
    why: str,
    would_fit: str,
) -> None:
    explained = case()
    obstacle = explained.obstacle

    assert not explained.result.admitted
    assert obstacle.container == container_name
    assert list(obstacle.resources) == resources
    assert obstacle.why == why
    assert obstacle.would_fit == would_fit
    summary = explained.explanation.summary
    assert summary.startswith(f"Rejected ({explained.result.reason}) by policy ")
    assert why in summary
    assert would_fit in summary


def test_uc_04_names_the_init_container() -> None:
    why = uc_04().obstacle.why

    assert 'init container "i" of the same pod holds 1 on NUMA node 0' in why
    assert "the earlier placement is the cause" in why


def test_a_rejection_shows_who_holds_what() -> None:
    explained = uc_34()
    (facts,) = explained.obstacle.facts

    assert [(n.numa_node, n.capacity, n.free) for n in facts.nodes] == [(0, 14, 6), (1, 14, 6)]
    assert [[(h.pod_uid, h.container, h.amount) for h in n.holders] for n in facts.nodes] == [
        [("a", "app", 7)],
        [("b", "app", 8)],
    ]
    assert [(c.mask, c.preferred) for c in facts.choices] == [(3, False)]
    assert explained.explanation.summary.endswith("cpu is held by b/app (8) and a/app (7).")


def test_facts_of_all_resources_come_with_their_choices() -> None:
    facts = {f.resource: f for f in clash().obstacle.facts}

    choices = {name: [(c.mask, c.preferred) for c in one.choices] for name, one in facts.items()}
    assert choices == {
        GPU: [(2, True), (3, False)],
        "cpu": [(1, True), (3, False)],
        "memory": [(1, True), (2, True)],
    }


def test_every_replica_is_told_the_same() -> None:
    assert uc_34().explanation == uc_34().explanation


@pytest.mark.parametrize(
    ("policy", "which", "summary"),
    [
        pytest.param(
            "none",
            pod("q", container(cpu=2)),
            "Admitted by policy none. No alignment was asked for: each provider chose by itself.",
            id="no-alignment",
        ),
        pytest.param(
            "restricted",
            pod("q", container(cpu=2, gpu=2, memory="1Gi")),
            'Admitted by policy restricted in container scope. Container "app" got {1}, '
            "preferred: the only set of NUMA nodes that all resources agree on (example.com/gpu "
            "offered {1}; cpu offered {0} or {1}; memory offered {0} or {1}).",
            id="only-choice",
        ),
        pytest.param(
            "single-numa-node",
            pod("q", *(container(f"c{number}", cpu=1) for number in range(5))),
            "Admitted by policy single-numa-node in container scope. Containers "
            '"c0", "c1" and "c2" got {0}, preferred: the first of the narrowest of 2 sets of NUMA '
            "nodes that all resources agree on (cpu offered {0} or {1}; memory offered {0} or "
            '{1}). Containers "c3" and "c4" got {1}, preferred: the only set of NUMA nodes that '
            "all resources agree on (cpu offered {1}; memory offered {0} or {1}).",
            id="several-containers",
        ),
        pytest.param(
            "best-effort",
            pod("q", container(cpu=3, gpu=2, memory="1Gi"), container("b", gpu=1, cpu=4)),
            'Admitted by policy best-effort in container scope. Container "app" got {1}, '
            "preferred: the only set of NUMA nodes that all resources agree on (example.com/gpu "
            "offered {1}; cpu offered {0} or {1}; memory offered {0} or {1}). "
            'Container "b" got {0}, not preferred: no preferred set of NUMA nodes can give cpu '
            "(best that is left: cpu on {0,1}).",
            id="not-aligned",
        ),
    ],
)
def test_an_admission_says_what_was_chosen(policy: str, which: Pod, summary: str) -> None:
    explained = two_of_four(policy).ask(which)

    assert explained.result.admitted
    assert explained.explanation.summary == summary
    assert not explained.explanation.obstacles


def test_uc_08_an_unaligned_admission_says_what_clashed() -> None:
    node = Node(
        machine(64, 64, gib=256),
        "best-effort",
        reserved="0",
        memory="Static",
        devices=[gpus(GPU, 1, 2)],
    )
    node.hold("x", 3, 0, memory="156Gi")
    node.hold("y", 4, 1, memory="156Gi")

    explained = node.ask(pod("p", container(cpu=80, gpu=3, memory="50Gi")))

    assert explained.explanation.summary == (
        'Admitted by policy best-effort in container scope. Container "app" got {0}, not '
        "preferred: cpu and memory have no set of NUMA nodes in common (cpu on {0,1}; memory on "
        "{0} or {1})."
    )
