"""The CPUs of each NUMA node as a reader of the node's resources sees them.

Separate from the facts behind hints: nothing is asked for here, and the question is how much
there is at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from numalign.cpu.state import CpuState
from numalign.cpu.static_setup import StaticSetup
from numalign.cpu.topology import CpuTopology
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.ids import NumaId


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCpus:
    """One NUMA node. `free` could become exclusive; `largest` is the most for one container."""

    node: NumaId
    cpus: CpuSet
    free: CpuSet = NO_CPUS
    largest: int = 0


def unmanaged_nodes(topology: CpuTopology) -> tuple[NodeCpus, ...]:
    """Every node under the policy `none`: nothing can become exclusive."""
    return tuple(
        NodeCpus(node=NumaId(node), cpus=CpuSet(cpus)) for node, cpus in topology.nodes.items()
    )


def managed_nodes(setup: StaticSetup, state: CpuState) -> tuple[NodeCpus, ...]:
    """Every node under the static policy, ascending."""
    available = setup.available(state)
    nodes = []
    for node, bits in setup.topology.nodes.items():
        cpus = CpuSet(bits)
        free = available & cpus
        nodes.append(
            NodeCpus(node=NumaId(node), cpus=cpus, free=free, largest=_largest(setup, state, free))
        )
    return tuple(nodes)


def _largest(setup: StaticSetup, state: CpuState, free: CpuSet) -> int:
    """As many of `free` as one request may name: whole cores with full-pcpus-only (CPU-47)."""
    if not setup.options.full_pcpus_only:
        return len(free)
    count = min(len(free), len(state.default - setup.reservation.physical))
    return count - count % setup.topology.group_size
