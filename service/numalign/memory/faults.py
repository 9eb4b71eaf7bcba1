"""What the kubelet answers with a crash, and this engine with an exception.

Separate from the exception tree of the whole project because only the memory engine raises
it, and the admission turns it into a rejection with this text.
"""

from __future__ import annotations

from numalign.errors import Fault


class MemoryFault(Fault):
    """The request names memory that the machine cannot even describe (MEM-29, MEM-T9).

    Asking for a huge page size that a NUMA node does not have ends the kubelet's process; here
    nothing is decided and nothing is kept.
    """


def missing_table(resource: str, node: int) -> MemoryFault:
    """The fault of a NUMA node that has no table for `resource`."""
    return MemoryFault(f'NUMA node {node} has no memory of type "{resource}"')


def missing_node(node: int) -> MemoryFault:
    """The fault of a mask that names a NUMA node the machine does not have."""
    return MemoryFault(f"NUMA node {node} does not exist on this machine")


def of_container(fault: MemoryFault, pod: str, container: str | None) -> MemoryFault:
    """The same fault, naming whose request it was; `container` None is the whole pod."""
    whose = f'pod "{pod}"' if container is None else f'container "{container}" of pod "{pod}"'
    return MemoryFault(f"[memorymanager] {whose} cannot be placed: {fault}")
