"""Facts for the explanation, numbers for the metrics, isolation levels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.cpu.cpu_machines import (
    GATES,
    PLRM,
    T8,
    T16,
    U16,
    allocate,
    allocate_whole,
    engine,
    hint,
    place,
    pod,
)

from numalign.cpu.isolation import (
    Isolation,
    container_is_unthrottled,
    isolation,
    pod_is_unthrottled,
)
from numalign.cpu.metrics import AllocationNumbers, container_numbers, is_in_one_cache, pod_numbers
from numalign.cpu.policy_static import StaticPolicy
from numalign.cpu.static_setup import StaticSetup
from numalign.model.cpu_set import CpuSet
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Pod


def setup_of(*options: str, gates: FeatureGates = GATES) -> StaticSetup:
    policy = engine(T8, "0", *options, gates=gates).policy
    assert isinstance(policy, StaticPolicy)
    return policy.setup


def test_facts_of_a_container() -> None:
    by = engine(T16, "0", "full-pcpus-only")
    state = place(by, by.start(None).state, pod("q", {"a": "2", "b": "4"}), hint(0))
    which = pod("p", {"a": "10"})

    (found,) = by.facts(state, which, which.container("a"))

    assert (found.resource, found.requested, found.minimum_nodes) == ("cpu", 10, 2)
    by_node = [(n.node, n.capacity, n.reserved, n.free) for n in found.nodes]
    assert by_node == [(0, 8, 1, 1), (1, 8, 0, 8)]
    assert [(h.pod_uid, h.container, h.amount) for h in found.nodes[0].holders] == [
        ("q", "a", 2),
        ("q", "b", 4),
    ]
    assert found.nodes[1].holders == ()
    assert found.note == "full-pcpus-only: multiples of 2 CPUs, 8 are free on whole cores"


def test_facts_of_a_pod_that_holds_a_set() -> None:
    by = engine(T8, gates=PLRM)
    whole = pod("p", {"a": "2", "s": None}, pod_cpu="4")
    state = allocate_whole(by, by.start(None).state, whole).state

    (found,) = by.facts(state, whole, None)

    assert found.requested == 4
    assert [(h.container, h.amount) for h in found.nodes[0].holders] == [("", 4)]


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (("prefer-align-cpus-by-uncorecache",), "one cache has 8 CPUs"),
        (("distribute-cpus-across-numa",), "spread evenly"),
        (("align-by-socket",), "of as few sockets"),
        (("full-pcpus-only",), "3 is not a multiple of 2"),
    ],
)
def test_options_are_noted(options: tuple[str, ...], note: str) -> None:
    by = engine(T16, "0", *options)
    which = pod("p", {"a": "3"})

    (found,) = by.facts(by.start(None).state, which, which.container("a"))

    assert note in found.note


def test_reuse_is_noted() -> None:
    by = engine(T8)
    both = pod("p", {"a": "3"}, {"i": "2"})
    state = allocate(by, by.start(None).state, both, "i").state

    (found,) = by.facts(state, both, both.container("a"))

    assert 'init containers leave CPUs "1,5" to be used again' in found.note


@pytest.mark.parametrize(
    ("which", "gates", "note"),
    [
        pytest.param(
            replace(pod("p", {"a": "2"}), status_qos_class="Burstable"),
            GATES,
            "no exclusive CPUs: the pod is Burstable, not Guaranteed",
            id="QoS",
        ),
        pytest.param(
            pod("p", {"a": "1500m"}),
            GATES,
            "no exclusive CPUs: the request is not a whole number",
            id="fraction",
        ),
        pytest.param(
            pod("p", {"a": "2"}, pod_cpu="4"),
            GATES,
            "pods with pod-level resources get no exclusive CPUs on this node",
            id="pod level",
        ),
        pytest.param(
            pod("p", {"a": "1500m"}, pod_cpu="4"),
            PLRM,
            "no exclusive CPUs: not a whole number with equal requests and limits",
            id="managed",
        ),
    ],
)
def test_reasons_for_sharing(which: Pod, gates: FeatureGates, note: str) -> None:
    by = engine(T8, gates=gates)

    (found,) = by.facts(by.start(None).state, which, which.container("a"))

    assert (found.requested, found.minimum_nodes, found.note) == (0, None, note)


def test_no_facts_without_a_request() -> None:
    by = engine(T8)
    which = pod("p", {"a": None})

    assert by.facts(by.start(None).state, which, which.container("a")) == ()
    assert by.facts(by.start(None).state, which, None) == ()


def test_pool_numbers() -> None:
    by = engine(T16, "0,8")
    state = place(by, by.start(None).state, pod("p", {"a": "4"}, {"i": "2"}), hint(1))

    found = by.pool_numbers(state)

    assert (found.shared_millicores, found.exclusive_count) == (10_000, 4)
    assert found.per_numa == {1: 4}


def test_container_numbers() -> None:
    by = engine(T8, "0", "full-pcpus-only")
    setup = setup_of("full-pcpus-only")
    state = by.start(None).state
    which, shared, odd = pod("p", {"a": "2"}), pod("q", {"a": None}), pod("r", {"a": "3"})

    def numbers(each: Pod) -> AllocationNumbers:
        outcome = allocate(by, state, each, "a")
        return container_numbers(setup, state, outcome, each, each.container("a"))

    assert numbers(shared) == AllocationNumbers()
    assert numbers(odd) == AllocationNumbers(requests=1, errors=1, misaligned_physical_cpu=1)
    assert numbers(which) == AllocationNumbers(
        requests=1, aligned_physical_cpu=1, aligned_uncore_cache=1, taken=2,
        exclusive_assignments=1,
    )  # fmt: skip
    state = allocate(by, state, which, "a").state
    assert numbers(which) == AllocationNumbers(requests=1, aligned_physical_cpu=1)


def test_pod_numbers() -> None:
    by, setup = engine(T8, gates=PLRM), setup_of(gates=PLRM)
    state = by.start(None).state

    def numbers(each: Pod) -> AllocationNumbers:
        return pod_numbers(setup, allocate_whole(by, state, each), each)

    assert numbers(pod("p", {"a": "2", "s": None}, {"i": None}, pod_cpu="3")) == AllocationNumbers(
        requests=1, aligned_uncore_cache=1, taken=3, exclusive_assignments=1, shared_assignments=2
    )
    assert numbers(pod("p", {"a": "2", "s": None}, pod_cpu="2")) == AllocationNumbers(errors=1)
    assert numbers(pod("p", {"a": "2"}, pod_cpu="1500m")) == AllocationNumbers()


@pytest.mark.parametrize(
    ("cpus", "aligned"), [("", True), ("15", True), ("0,11", True), ("3-4", False)]
)
def test_one_cache(cpus: str, aligned: bool) -> None:
    assert is_in_one_cache(CpuSet.parse(cpus), engine(U16).topology) is aligned


def test_isolation_of_a_managed_pod() -> None:
    by = engine(T8, gates=PLRM)
    mixed = pod("p", {"a": "2", "s": None}, pod_cpu="3")
    state = allocate_whole(by, by.start(None).state, mixed).state

    def level(each: Pod, name: str, gates: FeatureGates) -> Isolation:
        return isolation(state, each, each.container(name), gates)

    assert level(mixed, "a", PLRM) is Isolation.CONTAINER
    assert level(mixed, "s", PLRM) is Isolation.POD
    assert level(mixed, "s", GATES) is Isolation.CONTAINER
    assert level(pod("q", {"a": "2"}), "a", PLRM) is Isolation.HOST
    assert not pod_is_unthrottled(state, mixed, PLRM)
    assert pod_is_unthrottled(state, mixed, GATES)
    assert container_is_unthrottled(state, mixed, mixed.container("a"), PLRM)
    assert not container_is_unthrottled(state, mixed, mixed.container("s"), PLRM)
    assert container_is_unthrottled(state, mixed, mixed.container("s"), GATES)
    off = FeatureGates(disable_cpu_quota_with_exclusive_cpus=False)
    assert not container_is_unthrottled(state, mixed, mixed.container("a"), off)
    assert not pod_is_unthrottled(state, mixed, off)
