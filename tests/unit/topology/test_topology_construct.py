"""Construction: what is built, what is refused, and in which order mistakes are found."""

from __future__ import annotations

import pytest

from numalign.errors import StartError
from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import PodUid
from numalign.model.machine import Machine, NumaNode
from numalign.model.pod import Pod, Resources
from numalign.model.quantity import Quantity
from numalign.model.settings import NumaAllocationStrategy, Placement, TopologySettings
from numalign.topology.construct import build_policy, configuration_faults
from numalign.topology.numa_info import narrowest
from numalign.topology.options import safe_node_limit
from numalign.topology.policy_best_effort import BestEffortPolicy
from numalign.topology.policy_none import NonePolicy
from numalign.topology.policy_restricted import RestrictedPolicy
from numalign.topology.policy_single_numa_node import SingleNumaNodePolicy
from numalign.topology.scope_container import ContainerScope
from numalign.topology.scope_none import NoneScope
from numalign.topology.scope_pod import PodScope

GATES = FeatureGates()
CLOSEST = "prefer-closest-numa-nodes"
MAX = "max-allowable-numa-nodes"
NO_DISTANCES = "cannot discover NUMA topology: error getting NUMA distances from cadvisor"


def machine(nodes: int, *, distances: bool = True) -> Machine:
    row = (10,) * nodes
    return Machine(
        numa_nodes=tuple(
            NumaNode(id=node, distances=row if distances else None) for node in range(nodes)
        )
    )


def settings(
    policy: str = "restricted", scope: str = "container", **options: str
) -> TopologySettings:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return TopologySettings(policy=policy, scope=scope, policy_options=named)


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        pytest.param("best-effort", BestEffortPolicy, id="best-effort"),
        pytest.param("restricted", RestrictedPolicy, id="restricted"),
        pytest.param("single-numa-node", SingleNumaNodePolicy, id="single-numa-node"),
    ],
)
@pytest.mark.parametrize(
    ("scope", "scope_kind"),
    [
        pytest.param("container", ContainerScope, id="container"),
        pytest.param("pod", PodScope, id="pod"),
    ],
)
def test_every_policy_with_every_scope(
    policy: str, kind: type, scope: str, scope_kind: type
) -> None:
    built = build_policy(settings(policy, scope), machine(2), GATES)

    assert type(built.policy) is kind
    assert type(built.scope) is scope_kind
    assert (built.policy.name, built.scope.name) == (policy, scope)
    assert built.policy.alignment_guaranteed is (policy == "single-numa-node")


def test_policy_none_checks_nothing_else() -> None:
    built = build_policy(
        settings("none", "node", prefer_farthest="1"), machine(9, distances=False), GATES
    )

    assert isinstance(built.policy, NonePolicy)
    assert isinstance(built.scope, NoneScope)
    assert built.scope.name == "none"
    assert built.numa is None


@pytest.mark.parametrize(
    ("option", "closest"),
    [pytest.param("true", True, id="on"), pytest.param("false", False, id="off")],
)
def test_distances_are_kept_only_if_they_count(option: str, closest: bool) -> None:
    built = build_policy(settings(prefer_closest_numa_nodes=option), machine(2), GATES)

    assert isinstance(built.policy, RestrictedPolicy)
    assert built.numa is not None
    assert bool(built.numa.distances) is closest
    assert built.policy.fitter == (built.numa.closest if closest else narrowest)


@pytest.mark.parametrize(
    ("given", "on", "message"),
    [
        pytest.param(
            settings("bogus", "node", prefer_farthest="1", prefer_closest_numa_nodes="1"),
            machine(9, distances=False),
            'unknown Topology Manager Policy option: "prefer-farthest"',
            id="b-option-first",
        ),
        pytest.param(
            settings("bogus", "node", prefer_closest_numa_nodes="1"),
            machine(9, distances=False),
            NO_DISTANCES,
            id="c-distances",
        ),
        pytest.param(
            settings("bogus", "node"),
            machine(9, distances=False),
            "unsupported on machines with more than 8 NUMA Nodes",
            id="d-node-count",
        ),
        pytest.param(
            settings("bogus", "node", max_allowable_numa_nodes="10"),
            machine(11),
            "unsupported on machines with more than 10 NUMA Nodes",
            id="d-node-count-of-the-option",
        ),
        pytest.param(
            settings("bogus", "node"), machine(8), 'unknown policy: "bogus"', id="e-policy"
        ),
        pytest.param(
            settings("", "container"), machine(1), 'unknown policy: ""', id="e-empty-policy"
        ),
        pytest.param(settings(scope="node"), machine(8), 'unknown scope: "node"', id="f-scope"),
        pytest.param(
            settings(max_allowable_numa_nodes="100"),
            machine(65),
            "cannot discover NUMA topology: bit number must be in range 0-63",
            id="more-than-a-mask-holds",
        ),
    ],
)
def test_refusals_in_order(given: TopologySettings, on: Machine, message: str) -> None:
    with pytest.raises(StartError) as caught:
        build_policy(given, on, GATES)

    assert (caught.value.stage, str(caught.value)) == ("topology_manager", message)


@pytest.mark.parametrize(
    ("given", "nodes"),
    [
        pytest.param(settings(), 8, id="limit-is-strict"),
        pytest.param(settings(max_allowable_numa_nodes="9"), 9, id="option-raises-it"),
    ],
)
def test_as_many_nodes_as_allowed(given: TopologySettings, nodes: int) -> None:
    built = build_policy(given, machine(nodes), GATES)

    assert built.numa is not None
    assert built.numa.default_mask == (1 << nodes) - 1


def test_safe_limit_is_what_a_mask_holds() -> None:
    built = build_policy(settings(), machine(64), GATES, safe_node_limit)

    assert built.numa is not None
    assert len(built.numa.nodes) == 64
    with pytest.raises(StartError, match="more than 64 NUMA Nodes"):
        build_policy(settings(), machine(65), GATES, safe_node_limit)
    with pytest.raises(StartError, match="more than 12 NUMA Nodes"):
        build_policy(settings(max_allowable_numa_nodes="12"), machine(13), GATES, safe_node_limit)


@pytest.mark.parametrize("scope", ["container", "pod"])
@pytest.mark.parametrize(
    ("gate", "section", "managed"),
    [
        pytest.param(True, "cpu", True, id="gate-and-section"),
        pytest.param(True, "example.com/gpu", False, id="other-resource"),
        pytest.param(True, None, False, id="no-section"),
        pytest.param(False, "cpu", False, id="gate-off"),
    ],
)
def test_which_pods_are_managed_as_a_whole(
    scope: str, gate: bool, section: str | None, managed: bool
) -> None:
    gates = FeatureGates(pod_level_resource_managers=gate)
    resources = None
    if section is not None:
        resources = Resources(limits={section: Quantity.from_int(2)})

    built = build_policy(settings(scope=scope), machine(2), gates).scope

    assert isinstance(built, ContainerScope | PodScope)
    assert built.managed_as_whole(Pod(uid=PodUid("p"), resources=resources)) is managed


POLICY_FAULT = (
    'invalid configuration: topologyManagerPolicy (--topology-manager-policy) "bogus" must be '
    'one of: ["none" "best-effort" "restricted" "single-numa-node"]'
)
SCOPE_FAULT = (
    'invalid configuration: topologyManagerScope (--topology-manager-scope) "node" must be '
    'one of: "container", or "pod"'
)
GATE_FAULT = (
    f"topology manager policy options map[{MAX}:9 {CLOSEST}:true] require feature gates "
    '"TopologyManagerPolicyOptions" enabled'
)
OPTIONS = {"prefer_closest_numa_nodes": "true", "max_allowable_numa_nodes": "9"}


@pytest.mark.parametrize(
    ("given", "options_allowed", "faults"),
    [
        pytest.param(TopologySettings(), True, (), id="defaults"),
        pytest.param(settings(**OPTIONS), True, (), id="options"),
        pytest.param(settings("bogus"), True, (POLICY_FAULT,), id="policy"),
        pytest.param(settings(scope="node"), True, (SCOPE_FAULT,), id="scope"),
        pytest.param(settings(), False, (), id="gate-off-without-options"),
        pytest.param(
            settings("bogus", "node", **OPTIONS),
            False,
            (POLICY_FAULT, SCOPE_FAULT, GATE_FAULT),
            id="all",
        ),
    ],
)
def test_configuration_faults(
    given: TopologySettings, options_allowed: bool, faults: tuple[str, ...]
) -> None:
    assert configuration_faults(given, options_allowed=options_allowed) == faults


@pytest.mark.parametrize("policy", ["best-effort", "restricted", "single-numa-node"])
@pytest.mark.parametrize("scope", ["container", "pod"])
def test_a_strategy_is_in_every_scope(policy: str, scope: str) -> None:
    strategy = NumaAllocationStrategy.MOST_ALLOCATED
    given = settings(policy, scope, prefer_closest_numa_nodes="true")

    built = build_policy(
        given, machine(2), GATES, placement=Placement(numa_allocation_strategy=strategy)
    )

    scopes = [built.scope, built.other_scope, *built.laxer.values()]
    for one in scopes:
        assert isinstance(one, ContainerScope | PodScope)
        assert one.order is not None
        assert one.order.strategy is strategy
        # Distances never count between single nodes.
        assert bool(one.order.numa.distances) is not one.policy.alignment_guaranteed


def test_no_strategy_is_in_no_scope() -> None:
    built = build_policy(settings(), machine(2), GATES)

    assert isinstance(built.scope, ContainerScope)
    assert built.scope.order is None


@pytest.mark.parametrize("policy", ["best-effort", "restricted", "single-numa-node"])
@pytest.mark.parametrize("on", [True, False])
def test_cpu_and_memory_come_first_under_best_effort_alone(policy: str, on: bool) -> None:
    placement = Placement(cpu_and_memory_first=on)

    built = build_policy(settings(policy), machine(2), GATES, placement=placement)

    scopes = {policy: built.scope, **built.laxer}
    best_effort = scopes["best-effort"]
    assert isinstance(best_effort, ContainerScope)
    assert isinstance(best_effort.policy, BestEffortPolicy)
    assert best_effort.policy.cpu_and_memory_first is on
