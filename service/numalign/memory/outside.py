"""Huge pages that are in use outside the books: the kernel has fewer free than the books think.

Pods that are not Guaranteed, and processes of the node, take huge pages without a booking; a pod
that is admitted beside them fails when it maps its own. Told, and no decision reads it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from numalign.memory.machine_state import MachineState
from numalign.model.quantity import Format, Quantity


def outside_the_books(
    machine: MachineState, kernel_free: Mapping[tuple[int, str], int]
) -> tuple[str, ...]:
    """A sentence for each pool that lacks pages; `kernel_free` are bytes by node and resource.

    A booked page that its container has not touched yet is free to the kernel, and what is
    reserved for the system is not free in the books: neither is mistaken for a lack.
    """
    return tuple(
        f"{resource} on NUMA node {node}: {_words(free)} free in the kernel, "
        f"{_words(table.free)} in the books: at least {_words(table.free - free)} are used outside "
        "them, and a pod that is admitted may not get its pages"
        for node, memory in machine.items()
        for resource, table in sorted(memory.tables.items())
        if (free := kernel_free.get((node, resource))) is not None and free < table.free
    )


def _words(amount: int) -> str:
    return Quantity.from_int(amount, Format.BINARY_SI).canonical()
