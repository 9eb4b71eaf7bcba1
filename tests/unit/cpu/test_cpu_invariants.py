"""What holds after any sequence of admissions and releases, on any machine."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cpu.cpu_machines import PLRM, allocate, allocate_whole, engine, pod

from numalign.cpu.engine import CpuEngine
from numalign.cpu.hints import HintTable, demand
from numalign.cpu.policy_static import StaticPolicy
from numalign.cpu.state import CpuState, union
from numalign.cpu.strategies import SAFE
from numalign.families.expand import expanded_list
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.machine import Core, Machine, NumaNode
from numalign.model.numa_mask import mask_of, subsets
from numalign.model.pod import Pod

OPTIONS = (
    (),
    ("full-pcpus-only",),
    ("distribute-cpus-across-cores",),
    ("distribute-cpus-across-numa",),
    ("distribute-cpus-across-numa", "full-pcpus-only"),
    ("prefer-align-cpus-by-uncorecache",),
    ("prefer-align-cpus-by-uncorecache", "full-pcpus-only", "strict-cpu-reservation"),
    ("align-by-socket", "strict-cpu-reservation"),
)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """1-4 nodes on 1-2 sockets, cores of 1 or 2 threads mixed freely, caches of 1-3 cores."""
    nodes = draw(st.integers(1, 4))
    sockets = draw(st.integers(1, min(nodes, 2)))
    per_cache = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.lists(st.integers(1, 2), min_size=1, max_size=4), min_size=nodes,
                          max_size=nodes))  # fmt: skip
    cpu = 0
    built = []
    for node, cores in enumerate(sizes):
        listed = []
        for number, threads in enumerate(cores):
            listed.append(
                Core(
                    id=number,
                    socket_id=node * sockets // nodes,
                    threads=tuple(range(cpu, cpu + threads)),
                    uncore_cache_id=node * 10 + number // per_cache,
                )
            )
            cpu += threads
        built.append(NumaNode(id=node, cores=tuple(listed)))
    return Machine(numa_nodes=tuple(built))


@dataclass(frozen=True)
class Step:
    """Admit a pod of the given sizes, or release the pod of this number."""

    release: bool
    number: int
    init: int
    app: int
    whole: int
    nodes: frozenset[int]


steps = st.builds(
    Step,
    release=st.booleans(),
    number=st.integers(0, 3),
    init=st.integers(0, 4),
    app=st.integers(0, 6),
    whole=st.integers(0, 6),
    nodes=st.frozensets(st.integers(0, 3), max_size=4),
)


def pod_for(step: Step) -> Pod:
    whole = str(step.whole + step.app) if step.whole else None
    return pod(
        f"p{step.number}", {"a": str(step.app), "s": None}, {"i": str(step.init)}, pod_cpu=whole
    )


def claims(state: CpuState, uid: PodUid) -> CpuSet:
    return union(state.assignments.get(uid, {})) | state.pod_sets.get(uid, NO_CPUS)


def admit(by: CpuEngine, state: CpuState, step: Step) -> CpuState:
    """Admit whole or not at all, checking that only offered CPUs are taken."""
    which = pod_for(step)
    if which.uid in by.pods(state):
        return state
    nodes = step.nodes & set(by.topology.nodes)
    affinity = TopologyHint(mask_of(nodes), True) if nodes else NO_HINT
    before = state
    if which.resources is not None:
        outcome = allocate_whole(by, state, which, affinity)
        assert claims(outcome.state, which.uid).issubset(state.default - by.reserved)
        return before if outcome.failure else outcome.state
    for container in which.all_containers():
        offered = (state.default - by.reserved) | state.reusable.get(which.uid, NO_CPUS)
        outcome = allocate(by, state, which, container.name, affinity)
        if outcome.failure:
            return before
        state = outcome.state
        taken = state.assignment(which.uid, container.name)
        assert taken is None or taken.issubset(offered)
    return state


def check(by: CpuEngine, state: CpuState, managed: CpuSet) -> None:
    total = state.default
    for uid in sorted(by.pods(state)):
        mine = claims(state, uid)
        assert mine.isdisjoint(total)
        assert mine.isdisjoint(by.reserved)
        total |= mine
    assert total == managed


@settings(max_examples=150, deadline=None)
@given(machines(), st.sampled_from(OPTIONS), st.lists(steps, max_size=12))
def test_cpus_have_one_owner_and_all_come_back(
    where: Machine, options: tuple[str, ...], sequence: list[Step]
) -> None:
    by = engine(where, "0", *options, strategies=SAFE, gates=PLRM)
    initial = state = by.start(None).state
    for step in sequence:
        state = by.release(state, pod_for(step).uid) if step.release else admit(by, state, step)
        check(by, state, initial.default)
        durable = by.start(by.encode(state))
        assert durable.reports == ()
        assert durable.state.assignments == state.assignments
        assert durable.state.default == state.default
    for uid in by.pods(state):
        state = by.release(state, uid)
    assert (state.default, state.assignments, state.pod_sets) == (initial.default, {}, {})


@settings(max_examples=100, deadline=None)
@given(machines(), st.sampled_from(OPTIONS), st.integers(1, 8), st.data())
def test_real_sizes_give_exactly_what_is_asked_for(
    where: Machine, options: tuple[str, ...], count: int, data: st.DataObject
) -> None:
    by = engine(where, "0", *options, strategies=SAFE)
    policy = by.policy
    assert isinstance(policy, StaticPolicy)
    offered = CpuSet.of(data.draw(st.sets(st.sampled_from(sorted(by.all_cpus)))))
    if len(offered) < count:
        return

    chosen = CpuSet(policy.setup.take(offered.bits, count))

    assert len(chosen) == count
    assert chosen.issubset(offered)


@settings(max_examples=100, deadline=None)
@given(machines(), st.integers(1, 12), st.data())
def test_hints_follow_their_definition(where: Machine, count: int, data: st.DataObject) -> None:
    """The table agrees with the rule written out for each mask (CPU-41)."""
    topology = engine(where, "0").topology
    cpus = st.sets(st.sampled_from(sorted(topology.all_cpus)))
    available = CpuSet.of(data.draw(cpus))
    reusable = CpuSet.of(data.draw(cpus)) - available
    expected = []
    minimum = len(topology.nodes)
    for mask in subsets(tuple(topology.nodes)):
        inside = CpuSet(sum(bits for node, bits in topology.nodes.items() if mask >> node & 1))
        if len(inside) >= count:
            minimum = min(minimum, mask.bit_count())
        if reusable.issubset(inside) and len(reusable) + len(available & inside) >= count:
            expected.append(mask)

    asked = demand(topology, available, reusable, count)
    found = expanded_list(HintTable(topology, align_by_socket=False).hints(asked))

    assert found == tuple(TopologyHint(m, m.bit_count() == minimum) for m in expected)


@settings(max_examples=100, deadline=None)
@given(machines(), st.integers(1, 12), st.booleans(), st.data())
def test_described_hints_are_the_listed_ones(
    where: Machine, count: int, by_socket: bool, data: st.DataObject
) -> None:
    """F-1: the same sets in the same order with the same flags."""
    topology = engine(where, "0").topology
    cpus = st.sets(st.sampled_from(sorted(topology.all_cpus)))
    reusable = CpuSet.of(data.draw(cpus))
    asked = demand(topology, CpuSet.of(data.draw(cpus)) - reusable, reusable, count)
    listing = HintTable(topology, align_by_socket=by_socket)
    describing = HintTable(topology, align_by_socket=by_socket, most_listed=0)

    assert expanded_list(describing.hints(asked)) == listing.hints(asked)
