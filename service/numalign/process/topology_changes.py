"""What new settings change in the Topology Manager while it runs.

Separate from putting it together. Pods that are admitted keep what they have, and their record
keeps the number of the configuration that placed them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from numalign.config.settings import Compatibility, Settings
from numalign.process.change import Change, InForce, refusals
from numalign.process.generation import Generation
from numalign.process.topology_context import TopologyContext, build_decider
from numalign.topology.as_a_whole import AsAWhole
from numalign.topology.construct import TopologyDecider
from numalign.topology.decision import DecidingParts
from numalign.topology.explainer import Explainer
from numalign.topology.manager import TopologyManager
from numalign.topology.node_resources.collector import NodeResourcesCollector
from numalign.topology.observer import DecisionObserver
from numalign.topology.records import Records
from numalign.topology.registry import ProviderRegistry
from numalign.topology.scope_pod import NAME as POD
from numalign.topology.servicer import AdmissionObserver, PolicyFacts, TopologyManagerServicer
from numalign.topology.turnstile import Turnstile

_DECIDING = frozenset({"topologyManagerPolicy", "featureGates", "numalign.placement"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What the servicer tells of one configuration, and whom it tells of its decisions."""

    facts: PolicyFacts
    observer: AdmissionObserver
    resources: NodeResourcesCollector


class TopologyNode:
    """The parts of one running Topology Manager that settings reach."""

    def __init__(
        self,
        *,
        manager: TopologyManager,
        records: Records,
        registry: ProviderRegistry,
        turnstile: Turnstile,
        generation: Generation,
    ) -> None:
        self._manager = manager
        self._records = records
        self._registry = registry
        self._turnstile = turnstile
        self._generation = generation

    @property
    def provider_timeout(self) -> float:
        """Seconds that a call to a provider may take where it does not say otherwise."""
        return self._context.settings.provider_timeout

    def telling(self, context: TopologyContext, decider: TopologyDecider) -> Telling:
        """What is told of the configuration in `context`."""
        settings = context.settings
        scope = decider.scope.name
        return Telling(
            facts=PolicyFacts(
                policy=settings.topology.policy,
                scope=scope,
                options=settings.topology.policy_options,
                numa_nodes=context.machine.node_ids(),
                compatibility=settings.compatibility.value,
                config_generation=self._generation.number,
            ),
            observer=DecisionObserver(context.metrics, scope, lambda: self._turnstile.waiting),
            resources=NodeResourcesCollector(
                self._records, self._registry, context.pods, settings.gates
            ),
        )

    def serve(
        self, context: TopologyContext, decider: TopologyDecider, servicer: TopologyManagerServicer
    ) -> None:
        """`servicer` tells the configuration in `context` now."""
        self._context = context
        self._decider = decider
        self._servicer = servicer
        self._in_force = InForce(values_of(context.settings))

    async def check(self, settings: Settings) -> Change:
        """What `settings` would change. Raises ConfigError with the text of the start check."""
        values = values_of(settings)
        changed = self._in_force.changed(values)
        context = replace(self._context, settings=settings)
        decider = self._decider
        if not _DECIDING.isdisjoint(changed):
            with refusals():
                decider = build_decider(context)

        async def apply() -> tuple[str, ...]:
            await self._apply(context, decider)
            self._in_force.now(values)
            return changed

        return Change(exclusive=not _DECIDING.isdisjoint(changed), apply=apply)

    async def _apply(self, context: TopologyContext, decider: TopologyDecider) -> None:
        settings = context.settings
        number = await self._generation.change(settings)
        self._manager.reconfigure(deciding_parts(decider, settings, number))
        self._turnstile.depth = settings.queue_depth
        self._records.keep(settings.history_length)
        for handle in self._registry.handles:
            if handle.built_in:
                handle.timeout = settings.provider_timeout
        self._context, self._decider = context, decider
        telling = self.telling(context, decider)
        self._servicer.reconfigure(telling.facts, telling.observer, telling.resources)


def deciding_parts(
    decider: TopologyDecider, settings: Settings, config_generation: int
) -> DecidingParts:
    """What decisions are made with under `settings`."""
    # What a refused pod leaves behind would be in the way of a trial.
    leaves = settings.compatibility is Compatibility.KUBELET
    return DecidingParts(
        scope=decider.scope,
        gates=settings.gates,
        explainer=Explainer(decider.policy, decider.numa, decider.scope.name),
        config_generation=config_generation,
        other_scope=None if leaves else decider.other_scope,
        laxer={} if leaves else decider.laxer,
        retry=None if leaves else _retry(decider, settings),
    )


def _retry(decider: TopologyDecider, settings: Settings) -> AsAWhole | None:
    """How a pod is decided on once more: in scope `pod`, if it was refused in scope `container`."""
    scope = decider.other_scope
    if not settings.placement.retry_in_pod_scope or scope is None or scope.name != POD:
        return None
    explainer = Explainer(decider.policy, decider.numa, scope.name)
    return AsAWhole(scope, explainer, decider.scope.name)


def values_of(settings: Settings) -> dict[str, object]:
    """The settings that a running Topology Manager takes, by path."""
    return {
        "topologyManagerPolicy": settings.topology,
        "featureGates": settings.gates,
        "numalign.placement": settings.placement,
        "numalign.providerTimeout": settings.provider_timeout,
        "numalign.queueDepth": settings.queue_depth,
        "numalign.historyLength": settings.history_length,
    }
