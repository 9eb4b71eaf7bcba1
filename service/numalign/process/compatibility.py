"""What `compatibility` means for every part: the one place where the mode is looked at.

Each part is handed its strategies; none asks for the mode (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from numalign.admission.admit_chain import ChainStrategies
from numalign.admission.chain.walk import allocate_in_place, allocate_last
from numalign.config.settings import Compatibility
from numalign.cpu import strategies as cpu
from numalign.cpu.engine import CpuEngine
from numalign.cpu.gauges import CpuGauges, DriftingGauges, ExactGauges
from numalign.cpu.strategies import CpuStrategies
from numalign.device.health import known_at_present
from numalign.device.plugin_host import strategies as plugin_host
from numalign.device.plugin_host.strategies import HostStrategies
from numalign.device.strategies import DeviceStrategies
from numalign.memory import engine as memory
from numalign.memory.engine import MemoryStrategies
from numalign.provider.cleanup import Cleanup, EagerCleanup, LazyCleanup
from numalign.provider.engine import Engine
from numalign.store.damage import OnDamage, refuse_damage, set_damage_aside
from numalign.telemetry.metrics import Metrics
from numalign.topology import strategies as topology
from numalign.topology.options import NodeLimit, kubelet_node_limit, safe_node_limit
from numalign.topology.strategies import TopologyStrategies

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategies:
    """The strategies of every part.

    `lazy_cleanup` chooses when ended pods are freed, `on_damage` what becomes of a damaged
    state file, `cpu_gauges` how the CPU gauges move.
    """

    topology: TopologyStrategies
    node_limit: NodeLimit
    cpu: CpuStrategies
    memory: MemoryStrategies
    device: DeviceStrategies
    plugin_host: HostStrategies
    lazy_cleanup: bool
    on_damage: OnDamage
    cpu_gauges: Callable[[CpuEngine, Metrics], CpuGauges]
    chain: ChainStrategies

    def cleanup(self, engine: Engine[S]) -> Cleanup[S]:
        """A clean-up for one provider."""
        return LazyCleanup() if self.lazy_cleanup else EagerCleanup(engine)


_SAFE = Strategies(
    topology=topology.SAFE,
    node_limit=safe_node_limit,
    cpu=cpu.SAFE,
    memory=memory.SAFE,
    device=DeviceStrategies(
        allocate_in_place=False, ready_after_allocation=True, health_of=known_at_present
    ),
    plugin_host=plugin_host.SAFE,
    lazy_cleanup=False,
    on_damage=set_damage_aside,
    cpu_gauges=ExactGauges,
    chain=ChainStrategies(walk=allocate_last, judge_again=False),
)
_KUBELET = Strategies(
    topology=topology.KUBELET,
    node_limit=kubelet_node_limit,
    cpu=cpu.KUBELET,
    memory=memory.KUBELET,
    device=DeviceStrategies(allocate_in_place=True, store_lazily=True),
    plugin_host=plugin_host.KUBELET,
    lazy_cleanup=True,
    on_damage=refuse_damage,
    cpu_gauges=DriftingGauges,
    chain=ChainStrategies(walk=allocate_in_place, judge_again=True),
)


def strategies_of(compatibility: Compatibility) -> Strategies:
    """The strategies of a mode."""
    return _KUBELET if compatibility is Compatibility.KUBELET else _SAFE
