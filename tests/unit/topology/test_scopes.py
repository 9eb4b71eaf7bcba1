"""Scopes against providers that note every call and answer by script."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from numalign.model.hint import NO_HINT, ProviderHints, TopologyHint
from numalign.model.ids import NumaId, PodUid
from numalign.model.numa_mask import NumaMask, mask_of
from numalign.model.pod import Container, Pod
from numalign.model.settings import NumaAllocationStrategy
from numalign.provider.values import AllocationFailure, NodeFacts, ResourceFacts
from numalign.topology.allocation_strategy import AllocationOrder, allocation_order
from numalign.topology.numa_info import NumaInfo, narrowest
from numalign.topology.policy import Policy
from numalign.topology.policy_best_effort import BestEffortPolicy
from numalign.topology.policy_restricted import RestrictedPolicy
from numalign.topology.policy_single_numa_node import SingleNumaNodePolicy
from numalign.topology.ports import ProviderAnswer
from numalign.topology.scope import AdmissionCounts, MergeRecord, Scope, ScopeResult
from numalign.topology.scope_container import ContainerScope
from numalign.topology.scope_none import NoneScope
from numalign.topology.scope_pod import PodScope

INFO = NumaInfo(nodes=(0, 1), default_mask=NumaMask(3))
POD = Pod(
    uid=PodUid("p"),
    init_containers=(Container(name="init", is_init=True),),
    containers=(Container(name="a"), Container(name="b")),
)
NODE_0 = TopologyHint(NumaMask(1), True)
NODE_1 = TopologyHint(NumaMask(2), True)
BOTH = TopologyHint(NumaMask(3), True)
SPREAD = TopologyHint(NumaMask(3), False)
NOT_ALIGNED = "Resources cannot be allocated with Topology locality"


@dataclass
class FakeProviders:
    """Hints and failures by container name; "pod" stands for the pod as a whole.

    `free` are the free CPUs of the nodes, as amounts tell them.
    """

    hints: dict[str, TopologyHint | tuple[TopologyHint, ...]] = field(default_factory=dict)
    failures: dict[str, AllocationFailure] = field(default_factory=dict)
    calls: list[tuple[object, ...]] = field(default_factory=list)
    free: tuple[int, int] = (8, 8)

    async def topology_hints(self, pod: Pod, container: Container) -> tuple[ProviderAnswer, ...]:
        assert pod is POD
        self.calls.append(("hints", container.name))
        return self.answers(container.name)

    async def pod_topology_hints(self, pod: Pod) -> tuple[ProviderAnswer, ...]:
        assert pod is POD
        self.calls.append(("hints", "pod"))
        return self.answers("pod")

    async def amounts(self, pod: Pod, container: Container | None) -> tuple[ResourceFacts, ...]:
        assert pod is POD
        self.calls.append(("amounts", "pod" if container is None else container.name))
        return (
            ResourceFacts(
                resource="cpu",
                requested=1,
                nodes=tuple(
                    NodeFacts(node=NumaId(node), capacity=8, reserved=0, free=free)
                    for node, free in enumerate(self.free)
                ),
            ),
        )

    async def allocate(
        self, pod: Pod, container: Container, affinity: TopologyHint, last: bool
    ) -> AllocationFailure | None:
        assert pod is POD
        self.calls.append(("allocate", container.name, affinity, last))
        return self.failures.get(container.name)

    async def allocate_pod(
        self, pod: Pod, affinity: TopologyHint, last: bool
    ) -> AllocationFailure | None:
        assert pod is POD
        self.calls.append(("allocate", "pod", affinity, last))
        return self.failures.get("pod")

    def answers(self, name: str) -> tuple[ProviderAnswer, ...]:
        hint = self.hints.get(name)
        several = (hint,) if isinstance(hint, TopologyHint) else hint
        hints: ProviderHints = None if several is None else {"cpu": several}
        return (ProviderAnswer("device", None), ProviderAnswer("cpu", hints))

    def merged(self, name: str, best: TopologyHint, admitted: bool = True) -> MergeRecord:
        return MergeRecord(
            container=None if name == "pod" else name,
            answers=self.answers(name),
            best=best,
            admitted=admitted,
        )


def container_scope(policy: Policy, as_whole: bool = False) -> Scope:
    return ContainerScope(policy, lambda _pod: as_whole)


def pod_scope(policy: Policy, as_whole: bool = False) -> Scope:
    return PodScope(policy, lambda _pod: as_whole)


RESTRICTED = RestrictedPolicy(INFO, narrowest)
BEST_EFFORT = BestEffortPolicy(INFO, narrowest)
SINGLE = SingleNumaNodePolicy(INFO)
UNTYPED = AllocationFailure("no devices")
UNTYPED_MESSAGE = "Allocate failed due to no devices, which is unexpected"


async def test_none_allocates_without_hints() -> None:
    providers = FakeProviders()

    assert await NoneScope().admit(POD, providers) == ScopeResult(admitted=True)
    assert providers.calls == [
        ("allocate", "init", NO_HINT, False),
        ("allocate", "a", NO_HINT, False),
        ("allocate", "b", NO_HINT, True),
    ]


async def test_none_stops_at_the_first_failure_and_counts_no_error() -> None:
    providers = FakeProviders(failures={"a": UNTYPED})

    result = await NoneScope().admit(POD, providers)

    assert result == ScopeResult(
        admitted=False, reason="UnexpectedAdmissionError", message=UNTYPED_MESSAGE
    )
    assert [call[1] for call in providers.calls] == ["init", "a"]


async def test_container_asks_again_after_each_allocation() -> None:
    providers = FakeProviders(hints={"init": NODE_0, "a": NODE_1})

    result = await container_scope(RESTRICTED).admit(POD, providers)

    assert providers.calls == [
        ("hints", "init"),
        ("allocate", "init", NODE_0, False),
        ("hints", "a"),
        ("allocate", "a", NODE_1, False),
        ("hints", "b"),
        ("allocate", "b", BOTH, True),
    ]
    assert result == ScopeResult(
        admitted=True,
        affinities={"init": NODE_0, "a": NODE_1, "b": BOTH},
        merges=(
            providers.merged("init", NODE_0),
            providers.merged("a", NODE_1),
            providers.merged("b", BOTH),
        ),
    )


async def test_container_refusal_keeps_what_came_before() -> None:
    providers = FakeProviders(hints={"a": SPREAD})

    result = await container_scope(RESTRICTED).admit(POD, providers)

    assert [call[:2] for call in providers.calls] == [
        ("hints", "init"),
        ("allocate", "init"),
        ("hints", "a"),
    ]
    assert result == ScopeResult(
        admitted=False,
        reason="TopologyAffinityError",
        message=NOT_ALIGNED,
        affinities={"init": BOTH},
        merges=(providers.merged("init", BOTH), providers.merged("a", SPREAD, admitted=False)),
        counts=AdmissionCounts(errors=1),
    )


async def test_best_effort_admits_the_same_spread() -> None:
    providers = FakeProviders(hints={"a": SPREAD})

    result = await container_scope(BEST_EFFORT).admit(POD, providers)

    assert result.admitted
    assert result.affinities["a"] == SPREAD
    assert result.counts == AdmissionCounts()


async def test_container_failure_of_a_provider() -> None:
    typed = AllocationFailure("SMT Alignment Error: odd", "SMTAlignmentError")
    providers = FakeProviders(failures={"a": typed})

    result = await container_scope(SINGLE).admit(POD, providers)

    assert [call[:2] for call in providers.calls][-1] == ("allocate", "a")
    assert (result.admitted, result.reason, result.message) == (
        False,
        "SMTAlignmentError",
        "SMT Alignment Error: odd",
    )
    # The affinity of the container that failed was stored before its allocation.
    assert list(result.affinities) == ["init", "a"]
    assert result.counts == AdmissionCounts(errors=1, aligned=1)


async def test_pod_spreads_one_hint_over_all_containers() -> None:
    providers = FakeProviders(hints={"pod": NODE_1})

    result = await pod_scope(RESTRICTED).admit(POD, providers)

    assert providers.calls == [
        ("hints", "pod"),
        ("allocate", "init", NODE_1, False),
        ("allocate", "a", NODE_1, False),
        ("allocate", "b", NODE_1, True),
    ]
    assert result == ScopeResult(
        admitted=True,
        affinities={"init": NODE_1, "a": NODE_1, "b": NODE_1},
        merges=(providers.merged("pod", NODE_1),),
    )


async def test_pod_stores_for_the_containers_it_reached() -> None:
    providers = FakeProviders(failures={"a": UNTYPED})

    result = await pod_scope(RESTRICTED).admit(POD, providers)

    assert (result.reason, result.message) == ("UnexpectedAdmissionError", UNTYPED_MESSAGE)
    assert result.affinities == {"init": BOTH, "a": BOTH}
    assert result.counts == AdmissionCounts(errors=1)


async def test_pod_managed_as_a_whole_is_allocated_once() -> None:
    providers = FakeProviders(hints={"pod": NODE_1})

    result = await pod_scope(SINGLE, as_whole=True).admit(POD, providers)

    assert providers.calls == [("hints", "pod"), ("allocate", "pod", NODE_1, True)]
    assert result.affinities == {"init": NODE_1, "a": NODE_1, "b": NODE_1}
    assert result.counts == AdmissionCounts(aligned=1)


async def test_pod_managed_as_a_whole_stores_for_all_before_it_fails() -> None:
    providers = FakeProviders(failures={"pod": UNTYPED})

    result = await pod_scope(RESTRICTED, as_whole=True).admit(POD, providers)

    assert (result.admitted, result.message) == (False, UNTYPED_MESSAGE)
    assert list(result.affinities) == ["init", "a", "b"]


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        pytest.param(container_scope(SINGLE), NOT_ALIGNED, id="container"),
        pytest.param(pod_scope(SINGLE), NOT_ALIGNED, id="pod"),
        pytest.param(
            container_scope(SINGLE, as_whole=True),
            "Pod Scope pod with pod-level resources failed admission with a container-level "
            "topology manager",
            id="container-pod-level",
        ),
        pytest.param(
            pod_scope(SINGLE, as_whole=True),
            "Pod Scope pod with pod-level resources failed admission under pod-scope topology "
            "manager",
            id="pod-pod-level",
        ),
    ],
)
async def test_message_of_a_refusal(scope: Scope, message: str) -> None:
    result = await scope.admit(POD, FakeProviders(hints={"init": BOTH, "pod": BOTH}))

    assert (result.admitted, result.reason, result.message, result.affinities) == (
        False,
        "TopologyAffinityError",
        message,
        {},
    )
    assert result.counts == AdmissionCounts(errors=1, not_aligned=1)


@pytest.mark.parametrize(
    ("scope", "aligned"),
    [
        pytest.param(container_scope(SINGLE), 3, id="per-container"),
        pytest.param(pod_scope(SINGLE), 1, id="per-pod"),
        pytest.param(container_scope(RESTRICTED), 0, id="not-guaranteed-container"),
        pytest.param(pod_scope(RESTRICTED), 0, id="not-guaranteed-pod"),
    ],
)
async def test_what_counts_as_aligned(scope: Scope, aligned: int) -> None:
    """Even though no container asked for anything."""
    result = await scope.admit(POD, FakeProviders())

    assert result.admitted
    assert result.counts == AdmissionCounts(aligned=aligned)


SPARSE = NumaInfo(nodes=(0, 8), default_mask=mask_of((0, 8)), distances={0: (10, 32), 8: (32, 10)})


@pytest.mark.parametrize(
    "make", [pytest.param(ContainerScope, id="container"), pytest.param(PodScope, id="pod")]
)
async def test_a_distance_that_is_not_there_decides_nothing(
    make: type[ContainerScope | PodScope],
) -> None:
    class Tied(FakeProviders):
        def answers(self, name: str) -> tuple[ProviderAnswer, ...]:
            if name == "init":
                return ()
            tied = (TopologyHint(mask_of((0,)), True), TopologyHint(mask_of((8,)), True))
            return (ProviderAnswer("cpu", {"cpu": tied}),)

    scope = make(BestEffortPolicy(SPARSE, SPARSE.closest), lambda _pod: False)

    result = await scope.admit(POD, Tied())

    assert not result.admitted
    assert result.reason == "UnexpectedAdmissionError"
    assert result.message == (
        "Allocate failed due to the distance from NUMA node 8 to NUMA node 8 is not known, "
        "the machine reports 2 distances for NUMA node 8, which is unexpected"
    )
    assert result.keeps_nothing
    assert result.affinities == {}


def most_allocated() -> AllocationOrder:
    made = allocation_order(NumaAllocationStrategy.MOST_ALLOCATED, INFO, prefer_closest=False)
    assert made is not None
    return made


@pytest.mark.parametrize("policy", [RESTRICTED, BEST_EFFORT, SINGLE], ids=lambda p: str(p.name))
@pytest.mark.parametrize(
    ("free", "chosen"),
    [
        pytest.param((6, 4), NODE_1, id="second-is-fuller"),
        pytest.param((4, 6), NODE_0, id="first-is-fuller"),
        pytest.param((5, 5), NODE_0, id="equally-full"),
    ],
)
async def test_container_looks_at_amounts_where_a_strategy_asks_for_them(
    policy: Policy, free: tuple[int, int], chosen: TopologyHint
) -> None:
    providers = FakeProviders(hints={"init": NODE_1, "a": (NODE_0, NODE_1), "b": NODE_0}, free=free)
    scope = ContainerScope(policy, lambda _pod: False, most_allocated())

    result = await scope.admit(POD, providers)

    assert result.affinities == {"init": NODE_1, "a": chosen, "b": NODE_0}
    assert {merge.strategy for merge in result.merges} == {NumaAllocationStrategy.MOST_ALLOCATED}
    assert providers.calls[:3] == [
        ("hints", "init"),
        ("amounts", "init"),
        ("allocate", "init", NODE_1, False),
    ]


async def test_pod_looks_at_the_amounts_of_the_pod() -> None:
    providers = FakeProviders(hints={"pod": (NODE_0, NODE_1)}, free=(8, 2))

    result = await PodScope(SINGLE, lambda _pod: False, most_allocated()).admit(POD, providers)

    assert set(result.affinities.values()) == {NODE_1}
    assert providers.calls[:2] == [("hints", "pod"), ("amounts", "pod")]


async def test_no_amounts_are_asked_for_without_a_strategy() -> None:
    providers = FakeProviders(hints={"a": (NODE_0, NODE_1)}, free=(8, 2))

    result = await container_scope(RESTRICTED).admit(POD, providers)

    assert result.affinities["a"] == NODE_0
    assert "amounts" not in {call[0] for call in providers.calls}
