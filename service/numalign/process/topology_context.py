"""What the Topology Manager of a process is built from, and its deciding part."""

from __future__ import annotations

from dataclasses import dataclass, replace

from numalign.config.settings import Settings
from numalign.model.machine import Machine
from numalign.process.compatibility import Strategies
from numalign.provider.pod_cache import PodCache
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.tracing import active_tracer
from numalign.topology.construct import TopologyDecider, build_policy
from numalign.topology.traced_policy import traced_scope


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyContext:
    """What the Topology Manager is built from."""

    settings: Settings
    machine: Machine
    strategies: Strategies
    pods: PodCache
    metrics: Metrics


def build_decider(context: TopologyContext) -> TopologyDecider:
    """Policy and scope. Raises StartError with the kubelet's text."""
    settings = context.settings
    decider = build_policy(
        settings.topology,
        context.machine,
        settings.gates,
        context.strategies.node_limit,
        settings.placement,
    )
    tracer = active_tracer()
    if tracer is None:
        return decider
    return replace(decider, scope=traced_scope(decider.scope, tracer))
