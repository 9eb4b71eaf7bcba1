"""The worked examples at the end of the CPU specification, by number."""

from __future__ import annotations

import pytest
from tests.unit.cpu.cpu_machines import (
    N8,
    PLRM,
    T8,
    T16,
    TWO_OF_4,
    TWO_OF_8,
    U16,
    allocate,
    allocate_whole,
    core,
    engine,
    held,
    hint,
    hints,
    machine,
    place,
    pod,
    single,
    smt,
)

from numalign.cpu.accumulator import AssignmentError
from numalign.cpu.metrics import container_numbers
from numalign.cpu.policy_static import StaticPolicy
from numalign.cpu.state import CpuState
from numalign.errors import StartError
from numalign.model.cpu_set import CpuSet
from numalign.model.ids import PodUid
from numalign.model.machine import Machine
from numalign.model.numa_mask import nodes_of
from numalign.model.pod import Pod
from numalign.provider.engine import Sources


def chosen(where: Machine, offered: str, count: int, *options: str, reserved: str = "0") -> str:
    policy = engine(where, reserved, *options).policy
    assert isinstance(policy, StaticPolicy)
    return str(CpuSet(policy.setup.take(CpuSet.parse(offered).bits, count)))


def listed(found: object) -> list[tuple[tuple[int, ...], bool]]:
    assert isinstance(found, dict)
    return [(nodes_of(h.mask), h.preferred) for h in found["cpu"]]


@pytest.mark.parametrize(
    ("options", "reserved"),
    [pytest.param((), "0,4", id="packed"),
     pytest.param(("distribute-cpus-across-cores",), "0-1", id="spread")],
)  # fmt: skip
def test_01_reserved_set_depends_on_options(options: tuple[str, ...], reserved: str) -> None:
    by = engine(T8, "", *options, reserved_milli_cpu=2000)

    assert str(by.reserved) == reserved


@pytest.mark.parametrize(("count", "cpus"), [(2, "1,9"), (1, "8"), (3, "1,8-9"), (8, "4-7,12-15")])
def test_02_best_fit_goes_to_the_fuller_socket(count: int, cpus: str) -> None:
    assert chosen(T16, "1-15", count) == cpus


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param("4", [((0, 1), False)], id="one node would hold it if empty"),
        pytest.param("5", [((0, 1), True)], id="two nodes are needed"),
    ],
)
def test_03_preferred_is_judged_on_capacity(
    count: str, expected: list[tuple[tuple[int, ...], bool]]
) -> None:
    by = engine(TWO_OF_4, "0,4")
    state = by.start(None).state

    assert listed(hints(by, state, pod("p", {"a": count}), "a")) == expected


def test_04_error_numbers_are_those_of_the_second_run() -> None:
    by = engine(TWO_OF_4, "0")
    state = place(by, by.start(None).state, pod("q", {"a": "4"}), hint(1))

    outcome = allocate(by, state, pod("p", {"a": "4"}), "a", hint(0))

    assert outcome.failure is not None
    assert outcome.failure.reason is None
    assert outcome.failure.message == (
        "not enough cpus available to satisfy request: requested=1, available=0"
    )
    assert outcome.state == state


def test_05_reuse_is_not_preferred() -> None:
    by = engine(TWO_OF_4, "0")
    both = pod("p", {"a": "4"}, {"i": "2"})
    after_init = allocate(by, by.start(None).state, both, "i").state

    assert listed(hints(by, after_init, both, "a")) == [((0, 1), False)]
    state = allocate(by, after_init, both, "a").state
    assert held(state, "p") == {"i": "1-2", "a": "4-7"}
    assert str(state.default) == "0,3"


def test_06_full_pcpus_only_does_not_know_reuse() -> None:
    by = engine(T8, "0", "full-pcpus-only")
    both = pod("p", {"a": "4"}, {"i": "4"})
    state = allocate(by, by.start(None).state, both, "i").state
    assert held(state, "p") == {"i": "1-2,5-6"}

    failure = allocate(by, state, both, "a").failure

    assert failure is not None
    assert failure.reason == "SMTAlignmentError"
    assert failure.message == (
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2, "
        "requested CPUs = 4, CPUs per core = 2"
    )


def test_07_full_pcpus_only_rejects_a_running_pod_again() -> None:
    by = engine(T8, "0", "full-pcpus-only")
    one = pod("p", {"a": "4"})
    state = place(by, by.start(None).state, one)
    state = by.start(by.encode(state)).state

    failure = allocate(by, state, one, "a").failure

    assert failure is not None
    assert failure.reason == "SMTAlignmentError"


def test_08_strict_reservation_can_brick_a_restart() -> None:
    by = engine(T8, "0", "strict-cpu-reservation")
    state = place(by, by.start(None).state, pod("p", {"a": "7"}))
    assert str(state.default) == ""

    with pytest.raises(StartError, match=r"^default cpuset cannot be empty$"):
        by.start(by.encode(state))


@pytest.mark.parametrize(
    ("count", "cpus"),
    [(4, "4-5,12-13"), (2, "4,12"), (5, "1-2,8-10"), (10, "1,4-7,9,12-15")],
)
def test_09_uncore_passes_over_partially_free_cores(count: int, cpus: str) -> None:
    assert chosen(U16, "1-15", count, "prefer-align-cpus-by-uncorecache") == cpus


def test_09_plain_packed_differs() -> None:
    assert chosen(U16, "1-15", 4) == "1-2,9-10"


@pytest.mark.parametrize(("count", "cpus"), [(2, "0-1"), (3, "0-1,8")])
def test_10_averages_are_not_sizes(count: int, cpus: str) -> None:
    uneven = machine({0: [core(c, c + 1) for c in range(0, 8, 2)] + single(range(8, 12))})

    assert chosen(uneven, "1-11", count) == cpus


def test_11_distribution_chooses_the_balanced_single_node() -> None:
    assert chosen(TWO_OF_8, "2-15", 4, "distribute-cpus-across-numa") == "8-11"
    assert chosen(TWO_OF_8, "2-15", 4) == "2-5"


@pytest.mark.parametrize(
    ("where", "options", "count", "cpus"),
    [
        pytest.param(TWO_OF_8, (), 10, "0-4,8-12", id="even"),
        pytest.param(TWO_OF_8, (), 11, "0-5,8-12", id="odd"),
        pytest.param(T16, ("full-pcpus-only",), 10, "0-2,4-5,8-10,12-13", id="in cores"),
        pytest.param(T16, (), 10, "0-2,4-6,8-9,12-13", id="in CPUs"),
        pytest.param(T16, ("full-pcpus-only",), 9, "0-4,8-11", id="no whole cores"),
    ],
)
def test_12_distribution_with_remainder(
    where: Machine, options: tuple[str, ...], count: int, cpus: str
) -> None:
    assert chosen(where, "0-15", count, "distribute-cpus-across-numa", *options) == cpus


@pytest.mark.parametrize(("count", "cpus"), [(8, "0-5,14-15"), (12, "0-9,14-15"), (6, "0-5")])
def test_13_shared_storage_effect(count: int, cpus: str) -> None:
    assert chosen(N8, "0-15", count, "distribute-cpus-across-numa") == cpus


def test_14_assignment_of_another_size_is_kept() -> None:
    by = engine(T8)
    state = place(by, by.start(None).state, pod("p", {"a": "2"}))
    grown = pod("p", {"a": "4"})

    assert hints(by, state, grown, "a") == {"cpu": ()}
    assert hints(by, state, grown) == {"cpu": ()}
    assert held(allocate(by, state, grown, "a").state, "p") == {"a": "1,5"}


def test_15_pod_with_shared_container_is_unsatisfiable_again() -> None:
    by = engine(T8, gates=PLRM)
    mixed = pod("p", {"a": "2", "s": None}, pod_cpu="3")
    state = allocate_whole(by, by.start(None).state, mixed).state

    assert hints(by, state, mixed) == {"cpu": ()}


def test_15_pod_allocation_is_not_idempotent() -> None:
    by = engine(T8, gates=PLRM)
    whole = pod("p", {"a": "2", "b": "1"}, pod_cpu="3")
    once = allocate_whole(by, by.start(None).state, whole).state
    assert str(once.pod_sets[PodUid("p")]) == "1,4-5"

    twice = allocate_whole(by, once, whole).state

    assert str(twice.pod_sets[PodUid("p")]) == "2-3,6"
    assert str(twice.default) == "0,7"
    with pytest.raises(StartError, match=r"^current set of available CPUs "):
        by.start(by.encode(twice))


def test_16_exclusive_count_drifts_with_reuse() -> None:
    by = engine(T8)
    policy = by.policy
    assert isinstance(policy, StaticPolicy)
    both = pod("p", {"a": "2"}, {"i": "2"})
    state, taken = by.start(None).state, 0
    for each in both.all_containers():
        outcome = allocate(by, state, both, each.name)
        taken += container_numbers(policy.setup, state, outcome, both, each).taken
        state = outcome.state

    assert held(state, "p") == {"i": "1,5", "a": "1,5"}
    assert taken == 4
    assert by.pool_numbers(state).exclusive_count == 2
    first = by.remove_container(state, PodUid("p"), "i")
    assert first.default == state.default
    second = by.remove_container(first, PodUid("p"), "a")
    assert str(second.default - first.default) == "1,5"


def test_17_fractional_reservation_rounds_up() -> None:
    assert len(engine(T8, "", reserved_milli_cpu=1500).reserved) == 2


@pytest.mark.parametrize(
    ("milli", "message"),
    [
        pytest.param(
            None, "unable to determine reserved CPU resources for static policy", id="absent"
        ),
        pytest.param(
            0,
            "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than"
            " zero",
            id="zero",
        ),
    ],
)
def test_17_no_reservation(milli: int | None, message: str) -> None:
    with pytest.raises(StartError) as refused:
        engine(T8, "", reserved_milli_cpu=milli)

    assert str(refused.value) == f"[cpumanager] {message}"


def test_18_state_with_pod_sets_is_unreadable_without_the_gate() -> None:
    with_gate, without = engine(T8, gates=PLRM), engine(T8)
    state = with_gate.start(None).state

    with pytest.raises(StartError, match="checkpoint is corrupted"):
        without.start(with_gate.encode(state))
    assert with_gate.start(without.encode(state)).state == state


def test_19_reusable_cpus_must_lie_in_the_mask_but_not_in_the_allocation() -> None:
    by = engine(TWO_OF_4, "0")
    both = pod("p", {"a": "2"}, {"i": "2"})
    state = allocate(by, by.start(None).state, both, "i", hint(0)).state

    assert listed(hints(by, state, both, "a")) == [((0,), True), ((0, 1), False)]
    assert held(allocate(by, state, both, "a", hint(1)).state, "p")["a"] == "4-5"


def test_20_whole_cores_are_not_kept_across_the_two_runs() -> None:
    by = engine(T16, "0", "full-pcpus-only")
    state = by.start(None).state
    eight = pod("p", {"a": "8"})

    assert listed(hints(by, state, eight, "a")) == [((1,), True), ((0, 1), False)]
    state = place(by, state, eight, hint(0, preferred=False))
    assert held(state, "p") == {"a": "1-4,8-11"}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("reserved", ["0,6", "0,24"])
def test_21_distribution_ends(reserved: str) -> None:
    where = machine({n: smt(range(6 * n, 6 * n + 6), 24, socket=n // 2) for n in range(4)})
    by = engine(where, reserved, "full-pcpus-only", "distribute-cpus-across-numa")

    outcome = allocate(by, by.start(None).state, pod("p", {"a": "38"}), "a")

    assert outcome.failure is None
    assert len(outcome.state.assignments[PodUid("p")]["a"]) == 38


def test_22_sidecar_arithmetic_and_reuse() -> None:
    by = engine(T8)
    mixed = pod(
        "p",
        {"c": "2", "f": "500m"},
        {"side": "1", "i1": "2", "i2": "3"},
        sidecars=frozenset({"side"}),
    )
    state = by.start(None).state
    found = hints(by, state, mixed)
    assert found == {"cpu": (hint(0),)}
    reusable = []
    for each in mixed.all_containers():
        state = allocate(by, state, mixed, each.name).state
        reusable.append(str(state.reusable[PodUid("p")]))

    assert held(state, "p") == {"side": "4", "i1": "1,5", "i2": "1-2,5", "c": "1,5"}
    assert reusable == ["", "1,5", "1-2,5", "2", "2"]
    assert str(state.default) == "0,3,6-7"
    released = []
    for name in ("side", "i1", "i2", "c"):
        after = by.remove_container(state, PodUid("p"), name)
        released.append(str(after.default - state.default))
        state = after
    assert released == ["4", "", "2", "1,5"]


def test_23_align_by_socket() -> None:
    where = machine({n: single(range(4 * n, 4 * n + 4), socket=n // 2) for n in range(4)})
    by = engine(where, "0", "align-by-socket")
    state = by.start(None).state
    preferred = [
        nodes for nodes, good in listed(hints(by, state, pod("p", {"a": "3"}), "a")) if good
    ]
    assert preferred == [(0,), (1,), (2,), (3,), (0, 1), (2, 3)]

    # 1-3 are free on node 0, 4 and 5 on node 1 of the same socket.
    taken = CpuSet.parse("6-15")
    state = CpuState(default=state.default - taken, assignments={PodUid("q"): {"a": taken}})
    assert held(place(by, state, pod("p", {"a": "2"}), hint(0)), "p") == {"a": "4-5"}


def bubble_pod(cpu: str) -> Pod:
    return pod(
        "p",
        {"c": "2", "sh": None},
        {"side": "1", "i1": "2", "i2": None, "side2": None},
        sidecars=frozenset({"side", "side2"}),
        pod_cpu=cpu,
    )


def test_24_pod_bubble_is_cut() -> None:
    by = engine(T8, gates=PLRM)
    state = allocate_whole(by, by.start(None).state, bubble_pod("5")).state

    assert str(state.pod_sets[PodUid("p")]) == "1-2,4-6"
    assert held(state, "p") == {
        "side": "4", "i1": "1,5", "i2": "1-2,5-6", "side2": "2,6", "c": "1,5", "sh": "2,6",
    }  # fmt: skip
    assert str(state.default) == "0,3,7"
    after = by.remove_container(state, PodUid("p"), "side")
    assert after.default == state.default
    for name in ("i1", "i2", "side2", "c", "sh"):
        after = by.remove_container(after, PodUid("p"), name)
    assert after == by.start(None).state


def test_24_fraction_at_the_pod_level_is_shared() -> None:
    by = engine(T8, gates=PLRM)
    state = by.start(None).state

    assert allocate_whole(by, state, bubble_pod("1500m")).state == state


def test_25_stopped_containers_keep_cpus() -> None:
    by = engine(T8)
    both = pod("p", {"a": "2"}, {"i": "2"})
    state = place(by, by.start(None).state, both)
    active = Sources(active={both.uid: frozenset({"i", "a"})})

    assert by.add_container(state, both, both.container("a")) == state
    assert by.remove_stale(state, active) == state
    assert by.remove_stale(state, Sources(active={})).default == by.start(None).state.default


def test_offered_cpus_must_suffice() -> None:
    with pytest.raises(AssignmentError, match="requested=3, available=2"):
        chosen(T8, "1-2", 3)
