"""Builds the policy and the scope that the settings name, or refuses as the kubelet does.

Separate from the parts it builds because the order of the checks is part of the behaviour:
it decides which of several mistakes is reported. Rules TM-13..TM-17.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from numalign.errors import StartError
from numalign.model.feature_gates import FeatureGates
from numalign.model.machine import Machine
from numalign.model.pod import Pod
from numalign.model.pod_resources import pod_level_resources_set
from numalign.model.quoting import quoted
from numalign.model.settings import KUBELET_PLACEMENT, Placement, TopologySettings
from numalign.topology import (
    policy_best_effort,
    policy_none,
    policy_restricted,
    policy_single_numa_node,
    scope_container,
    scope_pod,
)
from numalign.topology.allocation_strategy import AllocationOrder, allocation_order
from numalign.topology.numa_info import STAGE, NumaInfo, narrowest, numa_info, reported_distances
from numalign.topology.options import (
    MAX_ALLOWABLE_NUMA_NODES,
    OPTIONS,
    NodeLimit,
    kubelet_node_limit,
    parse_options,
)
from numalign.topology.policy import Policy
from numalign.topology.scope import Scope
from numalign.topology.scope_none import NoneScope

POLICIES = (
    policy_none.NAME,
    policy_best_effort.NAME,
    policy_restricted.NAME,
    policy_single_numa_node.NAME,
)
SCOPES = (scope_container.NAME, scope_pod.NAME)
_LAXER = {
    policy_single_numa_node.NAME: (policy_restricted.NAME, policy_best_effort.NAME),
    policy_restricted.NAME: (policy_best_effort.NAME,),
}
_OTHER = {scope_container.NAME: scope_pod.NAME, scope_pod.NAME: scope_container.NAME}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDecider:
    """The deciding part of the Topology Manager; `numa` is None under policy `none`.

    `other_scope` decides by the same policy in the scope that is not configured, if there is one;
    `laxer` by policies that refuse less, the strictest first, in the scope that is.
    """

    policy: Policy
    scope: Scope
    numa: NumaInfo | None
    other_scope: Scope | None = None
    laxer: Mapping[str, Scope] = field(default_factory=dict)


def build_policy(
    settings: TopologySettings,
    machine: Machine,
    gates: FeatureGates,
    node_limit: NodeLimit = kubelet_node_limit,
    placement: Placement = KUBELET_PLACEMENT,
) -> TopologyDecider:
    """Policy and scope for `settings` on `machine`; `placement` takes them beyond the kubelet's.

    Raises StartError with the kubelet's text for the first check that fails, in the order of
    TM-13. Under policy `none` nothing else is checked.
    """
    if settings.policy == policy_none.NAME:
        return TopologyDecider(policy=policy_none.NonePolicy(), scope=NoneScope(), numa=None)
    options = parse_options(settings.policy_options, gates)
    distances = reported_distances(machine) if options.prefer_closest_numa_nodes else {}
    limit = node_limit(options.max_allowable_numa_nodes)
    if len(machine.numa_nodes) > limit:
        raise StartError(
            STAGE,
            f"unsupported on machines with more than {limit} NUMA Nodes",
            setting=f"{OPTIONS}.{MAX_ALLOWABLE_NUMA_NODES}",
        )
    numa = numa_info(machine, distances)
    made = partial(
        _policy,
        numa=numa,
        prefer_closest=options.prefer_closest_numa_nodes,
        cpu_and_memory_first=placement.cpu_and_memory_first,
    )
    policy = made(settings.policy)

    def scope(name: str, policy: Policy) -> Scope:
        # Distances never count between single nodes.
        closest = options.prefer_closest_numa_nodes and not policy.alignment_guaranteed
        order = allocation_order(placement.numa_allocation_strategy, numa, prefer_closest=closest)
        return _scope(name, policy, gates, order)

    return TopologyDecider(
        policy=policy,
        scope=scope(settings.scope, policy),
        numa=numa,
        other_scope=scope(_OTHER[settings.scope], policy),
        laxer={name: scope(settings.scope, made(name)) for name in _LAXER.get(settings.policy, ())},
    )


def configuration_faults(
    settings: TopologySettings, *, options_allowed: bool = True
) -> tuple[str, ...]:
    """What the configuration's validation has against `settings`, in the kubelet's words.

    `options_allowed` is the gate `TopologyManagerPolicyOptions` (TM-16). Made before
    construction, and before the machine is known; empty if all is well.
    """
    faults = []
    if settings.policy not in POLICIES:
        known = " ".join(quoted(name) for name in POLICIES)
        faults.append(
            "invalid configuration: topologyManagerPolicy (--topology-manager-policy) "
            f"{quoted(settings.policy)} must be one of: [{known}]"
        )
    if settings.scope not in SCOPES:
        container, pod = (quoted(name) for name in SCOPES)
        faults.append(
            "invalid configuration: topologyManagerScope (--topology-manager-scope) "
            f"{quoted(settings.scope)} must be one of: {container}, or {pod}"
        )
    if settings.policy_options and not options_allowed:
        faults.append(
            f"topology manager policy options {_map_text(settings.policy_options)} "
            'require feature gates "TopologyManagerPolicyOptions" enabled'
        )
    return tuple(faults)


def _policy(
    name: str, numa: NumaInfo, *, prefer_closest: bool, cpu_and_memory_first: bool
) -> Policy:
    fitter = numa.closest if prefer_closest else narrowest
    if name == policy_best_effort.NAME:
        return policy_best_effort.BestEffortPolicy(numa, fitter, cpu_and_memory_first)
    if name == policy_restricted.NAME:
        return policy_restricted.RestrictedPolicy(numa, fitter)
    if name == policy_single_numa_node.NAME:
        return policy_single_numa_node.SingleNumaNodePolicy(numa)
    raise StartError(STAGE, f"unknown policy: {quoted(name)}", setting="topologyManagerPolicy")


def _scope(name: str, policy: Policy, gates: FeatureGates, order: AllocationOrder | None) -> Scope:
    managed_as_whole = _managed_as_whole(gates)
    if name == scope_container.NAME:
        return scope_container.ContainerScope(policy, managed_as_whole, order)
    if name == scope_pod.NAME:
        return scope_pod.PodScope(policy, managed_as_whole, order)
    raise StartError(STAGE, f"unknown scope: {quoted(name)}", setting="topologyManagerScope")


def _managed_as_whole(gates: FeatureGates) -> Callable[[Pod], bool]:
    """Which pods are managed at pod level: none unless the gate is on (TM-43, TM-47)."""
    if gates.pod_level_resource_managers:
        return pod_level_resources_set
    return _never


def _never(pod: Pod) -> bool:  # noqa: ARG001 - stands in for a question about the pod
    return False


def _map_text(options: Mapping[str, str]) -> str:
    """The printed form of a map in the kubelet's messages: keys sorted."""
    return f"map[{' '.join(f'{key}:{options[key]}' for key in sorted(options))}]"
