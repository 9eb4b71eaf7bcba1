"""What is said to have fitted fits: the engines are asked with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.unit.topology.explain_world import (
    GPU,
    NIC,
    Node,
    container,
    gpus,
    machine,
    pod,
    with_requests,
)

from numalign.model.pod import Pod
from numalign.model.quantity import Quantity

_AMOUNT = r"(\S+) of (?:at most )?(\d\S*(?: bytes)?)"
_CORES = re.compile(r"multiples of (\d+) CPUs, (\d+) are free")


def claimed(would_fit: str) -> dict[str, Quantity]:
    """The amounts that are said to fit, by resource."""
    head = would_fit.partition("within this")[0].partition(" on NUMA")[0]
    return {
        name: Quantity.parse(amount.removesuffix(" bytes").rstrip(",;"))
        for name, amount in re.findall(_AMOUNT, head)
    }


def within(would_fit: str, amounts: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """The amounts under the condition on whole cores, if there is one."""
    found = _CORES.search(would_fit)
    if found is None or "cpu" not in amounts:
        return dict(amounts)
    per_core, free = int(found[1]), int(found[2])
    cpus = min(amounts["cpu"].value(), free) // per_core * per_core
    return {**amounts, "cpu": Quantity.from_int(cpus)}


def is_admitted(node: Node, which: Pod, name: str, lowered: Collection[str]) -> bool:
    """Whether the container passes, as far as the policy and the lowered resources go.

    A resource that was not lowered may still have a problem of its own in its allocation,
    which the first refusal came before.
    """
    explained = node.ask(which)
    if explained.result.admitted:
        return True
    obstacle, merges = explained.obstacle, explained.result.merges
    if obstacle.container not in {"", name}:
        return True
    refused_by_policy = bool(merges) and not merges[-1].admitted
    return not refused_by_policy and not set(obstacle.resources) & set(lowered)


nodes = st.builds(
    lambda sizes, **fields: Node(
        machine(*sizes, gib=4, huge_2mi=64, threads=2, sockets=2), reserved="0", **fields
    ),
    st.lists(st.sampled_from([4, 6, 8]), min_size=2, max_size=4),
    policy=st.sampled_from(["none", "restricted", "single-numa-node", "best-effort"]),
    scope=st.sampled_from(["container", "pod"]),
    cpu_options=st.sampled_from([(), ("full-pcpus-only",), ("distribute-cpus-across-numa",)]),
    memory=st.sampled_from(["None", "Static"]),
    devices=st.builds(
        lambda a, b: (gpus(GPU, *a), gpus(NIC, *b)),
        st.lists(st.integers(0, 2), min_size=2, max_size=2),
        st.lists(st.integers(0, 2), min_size=2, max_size=2),
    ),
)

amounts = st.fixed_dictionaries(
    {
        "cpu": st.integers(0, 12),
        "memory": st.sampled_from(["1Mi", "1Gi", "3Gi", "3900Mi", "5Gi", "40Gi"]),
        "hugepages_2Mi": st.sampled_from(["0", "0", "64Mi", "100Mi", "200Mi"]),
        "gpu": st.sampled_from([0, 0, 1, 2, 3]),
        "nic": st.sampled_from([0, 0, 1, 2]),
    }
)
small = st.fixed_dictionaries(
    {
        "cpu": st.integers(0, 4),
        "memory": st.sampled_from(["1Mi", "1Gi", "2Gi", "5Gi"]),
        "gpu": st.sampled_from([0, 0, 1]),
    }
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    node=nodes,
    before=st.lists(small, max_size=4),
    kind=st.sampled_from(["app", "init", "sidecar"]),
    first=st.none() | small,
    asked=amounts,
    share=st.integers(1, 100),
)
def test_what_is_said_to_fit_is_admitted(
    node: Node,
    before: list[dict[str, Any]],
    kind: str,
    first: dict[str, Any] | None,
    asked: dict[str, Any],
    share: int,
) -> None:
    for number, amount in enumerate(before):
        node.admit(pod(f"before{number}", container(kind="app", **amount)))
    earlier = [] if first is None else [container("first", kind=kind, **first)]
    which = pod("p", *earlier, container("second", **asked))
    explained = node.ask(which)
    if explained.result.admitted:
        return
    obstacle = explained.obstacle
    name = obstacle.container
    if not name:
        if first is not None:
            return
        name = "second"
    fitting = within(obstacle.would_fit, claimed(obstacle.would_fit))
    if any(amount.is_zero() for amount in fitting.values()):
        return
    if fitting:
        event(f"{explained.result.reason}: {', '.join(sorted(fitting))}")
        assert is_admitted(node, with_requests(which, name, fitting), name, fitting)
    if fitting and "at most" in obstacle.would_fit:
        less = {
            resource: Quantity.from_int(max(1, amount.value() * share // 100))
            for resource, amount in fitting.items()
        }
        less = within(obstacle.would_fit, less)
        if not any(amount.is_zero() for amount in less.values()):
            assert is_admitted(node, with_requests(which, name, less), name, less)


def test_several_nodes_may_hold_fewer_cpus() -> None:
    node = Node(machine(6, 6, 6), "restricted", reserved="0")
    node.hold("a", 1, 1)
    node.hold("b", 1, 2)
    which = pod("p", container(cpu=12))

    would_fit = node.ask(which).obstacle.would_fit

    assert would_fit == "cpu of 10 on NUMA nodes 0 and 1"
    assert node.ask(with_requests(which, "app", {"cpu": Quantity.parse("10")})).result.admitted


def test_a_set_that_fewer_nodes_would_do_for_is_not_offered() -> None:
    node = Node(machine(6, 6), "restricted", reserved="0")
    node.hold("a", 3, 0)
    node.hold("b", 3, 1)

    would_fit = node.ask(pod("p", container(cpu=8))).obstacle.would_fit

    assert would_fit == "cpu of at most 3 on NUMA node 1"


def test_resources_are_lowered_together() -> None:
    node = Node(machine(4, 4, gib=4), "single-numa-node", reserved="0", devices=[gpus(GPU, 1, 1)])
    which = pod("p", container(cpu=6, gpu=2))

    obstacle = node.ask(which).obstacle

    assert list(obstacle.resources) == [GPU, "cpu"]
    assert claimed(obstacle.would_fit) == {
        GPU: Quantity.parse("1"),
        "cpu": Quantity.parse("4"),
    }
    assert node.ask(with_requests(which, "app", claimed(obstacle.would_fit))).result.admitted


def test_fewer_cpus_of_a_container_are_not_offered_where_the_pod_as_a_whole_needs_two_nodes() -> (
    None
):
    node = Node(
        machine(4, 8, gib=4, threads=2, sockets=2),
        "restricted",
        reserved="0",
        scope="pod",
        cpu_options=("full-pcpus-only",),
        memory="Static",
    )
    first = container("first", cpu=4, memory="1Gi")
    which = pod("p", first, container("second", cpu=7, memory="3Gi"))

    explained = node.ask(which)

    assert explained.result.reason == "SMTAlignmentError"
    assert explained.obstacle.would_fit == ""
    fewer = pod("p", first, container("second", cpu=2, memory="3Gi"))
    assert node.ask(fewer).result.reason == "TopologyAffinityError"


def test_less_memory_of_a_container_is_not_offered_where_the_pod_as_a_whole_needs_two_nodes() -> (
    None
):
    node = Node(
        machine(4, 4, 4, gib=4, threads=2, sockets=2),
        "restricted",
        reserved="0",
        scope="pod",
        memory="Static",
    )
    for number in range(3):
        node.admit(pod(f"before{number}", container(memory="1Mi")))
    second = container("second", cpu=1, memory="3900Mi")

    explained = node.ask(pod("p", container("first", memory="5Gi"), second))

    assert explained.result.reason == "UnexpectedAdmissionError"
    assert explained.obstacle.would_fit == ""
    less = pod("p", container("first", memory="1Gi"), second)
    assert node.ask(less).result.reason == "TopologyAffinityError"
