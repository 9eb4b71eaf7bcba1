"""The final choice of NUMA nodes for one request, from what the Topology Manager found.

The manager's hint need not name nodes, nor nodes with enough free memory; here it is replaced
or extended until it does, or the request fails.
"""

from __future__ import annotations

from numalign.memory.booking import free_on
from numalign.memory.columns import columns_of
from numalign.memory.eligibility import Request
from numalign.memory.hints import best_hint, compute_hints
from numalign.memory.machine_state import MEMORY, MachineState, Reusable
from numalign.model.hint import TopologyHint
from numalign.model.numa_mask import NumaMask
from numalign.provider.values import AllocationFailure

NO_DEFAULT = AllocationFailure(
    "[memorymanager] failed to get the default NUMA affinity, "
    "no NUMA nodes with enough memory is available"
)
NO_PREFERRED_DEFAULT = AllocationFailure(
    "[memorymanager] failed to find the default preferred hint"
)
NO_EXTENSION = AllocationFailure(
    "[memorymanager] failed to find NUMA nodes to extend the current topology hint"
)
NO_PREFERRED_EXTENSION = AllocationFailure(
    "[memorymanager] failed to find the extended preferred hint"
)
BROKEN_GROUP = AllocationFailure("[memorymanager] preferred hint violates NUMA node allocation")


def choose_mask(
    machine: MachineState, request: Request, affinity: TopologyHint, reusable: Reusable
) -> NumaMask | AllocationFailure:
    """The NUMA nodes to book `request` on, or why there are none (MEM-33..MEM-36).

    Raises MemoryFault where a node lacks a table for a requested resource, and Undecided where
    the best of many sets of nodes cannot be found in time.
    """
    mask, preferred = affinity.mask, affinity.preferred
    if mask is None:
        chosen = _default_hint(machine, request, preferred, reusable)
        if isinstance(chosen, AllocationFailure):
            return chosen
        mask, preferred = chosen
    if not _satisfies(machine, mask, request):
        chosen = _extended_hint(machine, request, mask, preferred, reusable)
        if isinstance(chosen, AllocationFailure):
            return chosen
        mask, preferred = chosen
    if mask & (mask - 1) and not columns_of(machine, {}).is_whole_group(mask):
        return BROKEN_GROUP
    return mask


def _default_hint(
    machine: MachineState, request: Request, preferred: bool, reusable: Reusable
) -> tuple[NumaMask, bool] | AllocationFailure:
    hints = compute_hints(machine, request, reusable)
    if not hints:
        return NO_DEFAULT
    best = best_hint(hints.get(MEMORY))
    if preferred and (best is None or not best.preferred):
        return NO_PREFERRED_DEFAULT
    if best is None or best.mask is None:
        # Huge pages without memory: the kubelet looks only at hints for memory, and crashes.
        return NO_DEFAULT
    return best.mask, best.preferred


def _extended_hint(
    machine: MachineState, request: Request, mask: NumaMask, preferred: bool, reusable: Reusable
) -> tuple[NumaMask, bool] | AllocationFailure:
    hints = compute_hints(machine, request, reusable) or {}
    best = best_hint(hints.get(MEMORY), containing=mask)
    if best is None or best.mask is None:
        return NO_EXTENSION
    if preferred and not best.preferred:
        return NO_PREFERRED_EXTENSION
    return best.mask, best.preferred


def _satisfies(machine: MachineState, mask: NumaMask, request: Request) -> bool:
    """Whether free memory alone, without what can be reused, holds the request (MEM-34)."""
    return all(free_on(machine, mask, resource) >= amount for resource, amount in request.items())
