"""Memory of finished init containers, used again by the containers after them.

Two ledgers change together: how much later containers of the pod may reuse (in memory only,
MEM-76), and the stored sizes of the init containers' blocks, which shrink so that the blocks
of a pod add up to what is booked for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from numalign.memory.machine_state import Reusable
from numalign.model.numa_mask import NumaMask, mask_of
from numalign.model.pod import Container, Pod
from numalign.provider.values import MemoryBlock


def update_reusable(
    reusable: Reusable, container: Container, blocks: Sequence[MemoryBlock]
) -> Reusable:
    """What the pod may reuse once `container` holds `blocks` (MEM-42, MEM-44, MEM-45)."""
    amounts: dict[tuple[NumaMask, str], int] = dict(reusable)
    for block in blocks:
        key = (mask_of(block.numa_nodes), block.resource)
        left = amounts.get(key, 0)
        if container.is_regular_init:
            amounts[key] = max(left, block.size)
        elif left:
            amounts[key] = max(0, left - block.size)
    return {key: left for key, left in amounts.items() if left}


def shrink_init_blocks(
    stored: Mapping[str, tuple[MemoryBlock, ...]],
    pod: Pod,
    container: Container,
    blocks: Sequence[MemoryBlock],
) -> Mapping[str, tuple[MemoryBlock, ...]]:
    """The pod's stored blocks after `container` took `blocks` (MEM-46, MEM-T8).

    Blocks of earlier regular init containers give way, in order, to what now stands for the
    same bytes; a block that shrinks to 0 stays.
    """
    shrunk = dict(stored)
    for block in blocks:
        remaining = block.size
        for earlier in pod.init_containers:
            if remaining == 0 or earlier.name == container.name:
                break
            held = shrunk.get(earlier.name)
            if earlier.restartable or not held:
                continue
            kept = []
            for old in held:
                taken = min(old.size, remaining) if _same_place(old, block) else 0
                remaining -= taken
                kept.append(replace(old, size=old.size - taken) if taken else old)
            shrunk[earlier.name] = tuple(kept)
    return shrunk


def _same_place(old: MemoryBlock, new: MemoryBlock) -> bool:
    return old.resource == new.resource and old.numa_nodes == new.numa_nodes
