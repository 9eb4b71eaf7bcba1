"""What `compatibility` means for every part: the one place where the mode is looked at.

Each part is handed its strategies; none asks for the mode (docs/architecture.md). The strategies
of a part are imported when they are asked for, since a service needs its own alone, and those of
others would bring their engines into its memory.
"""

# ruff: noqa: PLC0415 - as said above

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from numalign.config.settings import Compatibility

if TYPE_CHECKING:
    from numalign.admission.admit_chain import ChainStrategies
    from numalign.cpu.engine import CpuEngine
    from numalign.cpu.gauges import CpuGauges
    from numalign.cpu.strategies import CpuStrategies
    from numalign.device.plugin_host.strategies import HostStrategies
    from numalign.device.strategies import DeviceStrategies
    from numalign.memory.engine import MemoryStrategies
    from numalign.provider.cleanup import Cleanup
    from numalign.provider.engine import Engine
    from numalign.store.damage import OnDamage
    from numalign.telemetry.metrics import Metrics
    from numalign.topology.options import NodeLimit
    from numalign.topology.strategies import TopologyStrategies

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Strategies:
    """The strategies of every part, in the kubelet's way or in numalign's own."""

    kubelet: bool

    @property
    def topology(self) -> TopologyStrategies:
        """Those of the Topology Manager."""
        from numalign.topology import strategies

        return strategies.KUBELET if self.kubelet else strategies.SAFE

    @property
    def node_limit(self) -> NodeLimit:
        """How many NUMA nodes are too many."""
        from numalign.topology.options import kubelet_node_limit, safe_node_limit

        return kubelet_node_limit if self.kubelet else safe_node_limit

    @property
    def cpu(self) -> CpuStrategies:
        """Those of the CPU engine."""
        from numalign.cpu import strategies

        return strategies.KUBELET if self.kubelet else strategies.SAFE

    @property
    def memory(self) -> MemoryStrategies:
        """Those of the memory engine."""
        from numalign.memory import engine

        return engine.KUBELET if self.kubelet else engine.SAFE

    @property
    def device(self) -> DeviceStrategies:
        """Those of the device engine."""
        from numalign.device.health import known_at_present
        from numalign.device.strategies import DeviceStrategies

        if self.kubelet:
            return DeviceStrategies(allocate_in_place=True, store_lazily=True)
        return DeviceStrategies(
            allocate_in_place=False, ready_after_allocation=True, health_of=known_at_present
        )

    @property
    def plugin_host(self) -> HostStrategies:
        """Those of the host of device plugins."""
        from numalign.device.plugin_host import strategies

        return strategies.KUBELET if self.kubelet else strategies.SAFE

    @property
    def on_damage(self) -> OnDamage:
        """What becomes of a damaged state file."""
        from numalign.store.damage import refuse_damage, set_damage_aside

        return refuse_damage if self.kubelet else set_damage_aside

    @property
    def cpu_gauges(self) -> Callable[[CpuEngine, Metrics], CpuGauges]:
        """How the CPU gauges move."""
        from numalign.cpu.gauges import DriftingGauges, ExactGauges

        return DriftingGauges if self.kubelet else ExactGauges

    @property
    def chain(self) -> ChainStrategies:
        """Those of the chain of admit handlers."""
        from numalign.admission.admit_chain import ChainStrategies
        from numalign.admission.chain.walk import allocate_in_place, allocate_last

        walk = allocate_in_place if self.kubelet else allocate_last
        return ChainStrategies(walk=walk, judge_again=self.kubelet)

    def cleanup(self, engine: Engine[S]) -> Cleanup[S]:
        """A clean-up for one provider: it chooses when ended pods are freed."""
        from numalign.provider.cleanup import EagerCleanup, LazyCleanup

        return LazyCleanup() if self.kubelet else EagerCleanup(engine)


def strategies_of(compatibility: Compatibility) -> Strategies:
    """The strategies of a mode."""
    return Strategies(kubelet=compatibility is Compatibility.KUBELET)
