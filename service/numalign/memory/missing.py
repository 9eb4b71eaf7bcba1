"""What a pod asks for and has not booked: pods placed under another policy, or by other books.

Separate from hints and booking, because nothing is booked here: the pod runs already.
"""

from __future__ import annotations

from collections import Counter

from numalign.memory.eligibility import Request
from numalign.memory.policy import MemoryPolicy
from numalign.memory.state import Blocks, MemoryState
from numalign.model.pod import Pod
from numalign.provider.engine import Lost


def missing_memory(
    state: MemoryState,
    pod: Pod,
    finished: frozenset[str],
    policy: MemoryPolicy,
    *,
    as_a_whole: bool,
) -> tuple[Lost, ...]:
    """Containers, or (`as_a_whole`) the pod, that ask for memory and have none, or another amount.

    What init containers hand on is taken from their blocks, so theirs may be smaller (MEM-43).
    """
    if as_a_whole:
        found = _compared("", policy.requested(pod, None), state.pods.get(pod.uid))
        return () if found is None else (found,)
    lost = []
    for container in pod.all_containers():
        blocks = state.blocks(pod.uid, container.name)
        if blocks is None and container.name in finished:
            continue
        found = _compared(
            container.name,
            policy.requested(pod, container),
            blocks,
            shrunk=container.is_regular_init,
        )
        if found is not None:
            lost.append(found)
    return tuple(lost)


def _compared(
    container: str, request: Request | None, blocks: Blocks | None, *, shrunk: bool = False
) -> Lost | None:
    asked = {name: size for name, size in (request or {}).items() if size}
    if blocks is None:
        if not asked:
            return None
        sizes = _sizes(asked)
        return Lost(container=container, message=f"not booked: asks for {sizes}, has none")
    held: Counter[str] = Counter()
    for block in blocks:
        held[block.resource] += block.size
    booked = {name: size for name, size in held.items() if size}
    if booked == asked or (shrunk and all(size <= asked.get(n, 0) for n, size in booked.items())):
        return None
    return Lost(
        container=container,
        message=f"holds {_sizes(booked)}, asks for {_sizes(asked)}",
        differs=True,
    )


def _sizes(amounts: dict[str, int]) -> str:
    return (
        ", ".join(f"{size} bytes of {name}" for name, size in sorted(amounts.items())) or "nothing"
    )
