"""The static policy as it was set up at start, and how it takes CPUs out of the shared set.

Separate from the policy so that containers, pods with resources of their own, facts and
metrics share it. Rules CPU-47, CPU-48, CPU-50.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from numalign.cpu.hints import HintTable
from numalign.cpu.options import CpuOptions
from numalign.cpu.reserved import Reservation
from numalign.cpu.state import CpuState
from numalign.cpu.take import Taker
from numalign.cpu.topology import CpuTopology
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.feature_gates import FeatureGates
from numalign.model.numa_mask import NumaMask, nodes_of
from numalign.model.settings import KUBELET_CPUS, CpuSwitches
from numalign.provider.values import AllocationFailure

SMT_ALIGNMENT_ERROR = "SMTAlignmentError"
EMPTY_SHARED_POOL_ERROR = "EmptySharedPoolError"
"""Reasons; the second one is not the kubelet's, which lets the shared set run empty (CPU-85)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticSetup:
    """Everything the static policy knows that is not state.

    `near` maps each NUMA node to the CPUs that an affinity for it stands for (CPU-50).
    """

    topology: CpuTopology
    options: CpuOptions
    gates: FeatureGates
    reservation: Reservation
    take: Taker
    table: HintTable
    near: Mapping[int, int]
    switches: CpuSwitches = KUBELET_CPUS

    def available(self, state: CpuState) -> CpuSet:
        """Shared CPUs that are not reserved."""
        return state.default - self.reservation.cpus

    def smt_failure(
        self, state: CpuState, count: int, reusable: CpuSet = NO_CPUS
    ) -> AllocationFailure | None:
        """Why `count` CPUs are no whole cores, with full-pcpus-only (CPU-47)."""
        if not self.options.full_pcpus_only:
            return None
        per_core = self.topology.group_size
        if count % per_core:
            return AllocationFailure(
                f"SMT Alignment Error: requested {count} cpus not multiple cpus per core = "
                f"{per_core}",
                SMT_ALIGNMENT_ERROR,
            )
        physical = self.free_on_whole_cores(state, reusable)
        if count > physical:
            return AllocationFailure(
                "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = "
                f"{physical}, requested CPUs = {count}, CPUs per core = {per_core}",
                SMT_ALIGNMENT_ERROR,
            )
        return None

    def free_on_whole_cores(self, state: CpuState, reusable: CpuSet) -> int:
        """How many CPUs there are for full-pcpus-only; a kubelet leaves reusable ones out."""
        free = state.default - self.reservation.physical
        return len(free | reusable if self.switches.reuse_init else free)

    def shared_failure(self, before: CpuState, after: CpuState) -> AllocationFailure | None:
        """Why what is between the two states cannot be taken, where some must stay shared.

        Without strict-cpu-reservation the reserved CPUs are shared, and there is always one.
        """
        if not self.switches.keep_shared or after.default or not before.default:
            return None
        return AllocationFailure(
            f"would leave no CPU to containers without exclusive ones: all {len(before.default)} "
            "shared CPUs are asked for, and one of them has to stay "
            "(numalign.placement.keepSharedCpus)",
            EMPTY_SHARED_POOL_ERROR,
        )

    def allocate_cpus(
        self, state: CpuState, count: int, affinity: NumaMask | None, reusable: CpuSet
    ) -> tuple[CpuState, CpuSet]:
        """Take `count` CPUs, near the affinity first (CPU-48).

        Raises AssignmentError; then nothing is taken.
        """
        pool = self.available(state).bits | reusable.bits
        chosen = 0
        for better in self._better(pool, affinity, reusable.bits):
            offered = better & ~chosen
            most = min(count - chosen.bit_count(), offered.bit_count())
            chosen |= self.take(offered, most)
        chosen |= self.take(pool & ~chosen, count - chosen.bit_count())
        cpus = CpuSet(chosen)
        return replace(state, default=state.default - cpus), cpus

    def _better(self, pool: int, affinity: NumaMask | None, reusable: int) -> Iterator[int]:
        """What is taken from before the rest of `pool`: first by first, as far as it goes."""
        again = reusable if self.switches.reuse_init else 0
        aligned = pool if affinity is None else pool & self._near(affinity)
        if again & aligned:
            yield again & aligned
        if affinity is not None:
            yield aligned
            if again & ~aligned:
                yield again

    def _near(self, affinity: NumaMask) -> int:
        bits = 0
        for node in nodes_of(affinity):
            bits |= self.near.get(node, 0)
        return bits


def near_cpus(topology: CpuTopology, *, by_socket: bool) -> dict[int, int]:
    """The CPUs of each NUMA node, or of all sockets it touches (CPU-50)."""
    if not by_socket:
        return dict(topology.nodes)
    return {
        node: sum(socket for socket in topology.sockets.values() if socket & cpus)
        for node, cpus in topology.nodes.items()
    }
