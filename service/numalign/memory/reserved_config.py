"""How the configuration speaks of reserved memory: the flag, its validation, and Node Allocatable.

Separate from `reserved` because all of this happens before there is a machine to compare with.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping

from numalign.errors import ConfigError
from numalign.memory.machine_state import MEMORY, is_managed
from numalign.model.ids import NumaId
from numalign.model.quantity import ZERO, Quantity, QuantitySyntaxError
from numalign.model.quoting import quoted
from numalign.model.settings import ReservedMemory

_INTEGER = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)


def parse_reserved_memory(values: Iterable[str]) -> tuple[ReservedMemory, ...]:
    """The entries of every occurrence of `--reserved-memory`, in order (MEM-6).

    Raises ConfigError with the kubelet's text.
    """
    return tuple(
        _parse_entry(entry) for value in values if value != "" for entry in value.split(";")
    )


def reserved_memory_errors(entries: Iterable[ReservedMemory]) -> tuple[str, ...]:
    """Everything that configuration validation finds wrong with `reservedMemory` (MEM-7)."""
    errors: list[str] = []
    seen: set[tuple[NumaId, str]] = set()
    for entry in entries:
        node = entry.numa_node
        for resource, quantity in sorted(entry.limits.items()):
            if not is_managed(resource):
                errors.append(
                    f'invalid configuration: the limit type "{resource}" for NUMA node {node} is '
                    "not supported, only [memory hugepages-<HugePageSize>] is accepted"
                )
            if quantity.is_zero():
                errors.append(
                    "invalid configuration: reserved memory may not be zero for NUMA node "
                    f'{node} and resource "{resource}"'
                )
            if (node, resource) in seen:
                errors.append(
                    "invalid configuration: the reserved memory has a duplicate value for NUMA "
                    f'node {node} and resource "{resource}"'
                )
            seen.add((node, resource))
    return tuple(errors)


def node_allocatable_reservation(
    capacity: Iterable[str],
    system_reserved: Mapping[str, Quantity],
    kube_reserved: Mapping[str, Quantity],
    hard_eviction_memory: Quantity | None,
) -> Mapping[str, Quantity]:
    """What Node Allocatable holds back, for every resource of the node's capacity (MEM-8).

    `hard_eviction_memory` is the hard threshold on `memory.available` in bytes, None if there
    is none. Resources whose sum is zero are absent.
    """
    eviction = {} if hard_eviction_memory is None else {MEMORY: hard_eviction_memory}
    sums: dict[str, Quantity] = {}
    for resource in capacity:
        total = ZERO
        for part in (system_reserved, kube_reserved, eviction):
            total = total + part.get(resource, ZERO)
        if not total.is_zero():
            sums[resource] = total
    return sums


def eviction_bytes(memory_capacity: int, fraction: float) -> int:
    """The bytes of a hard eviction threshold given as a share (0..1) of the memory (MEM-8).

    The kubelet keeps the share as a 32-bit float, which moves the result by a few bytes.
    """
    (single,) = struct.unpack("f", struct.pack("f", fraction))
    return int(float(memory_capacity) * float(single))


def _parse_entry(entry: str) -> ReservedMemory:
    parts = entry.split(":")
    if len(parts) != 2:
        raise ConfigError(
            "the reserved memory has incorrect format, expected "
            f"numaNodeID:type=quantity[,type=quantity...], got {entry}"
        )
    node, limits = parts
    if not _INTEGER.match(node):
        raise ConfigError(f"failed to convert the NUMA node ID, expected integer, got {node}")
    return ReservedMemory(
        numa_node=NumaId(int(node)), limits=dict(_parse_limit(limit) for limit in limits.split(","))
    )


def _parse_limit(limit: str) -> tuple[str, Quantity]:
    parts = limit.split("=")
    if len(parts) != 2:
        raise ConfigError(
            f"the reserved limit has incorrect value, expected type=quantity, got {limit}"
        )
    resource, quantity = parts
    if not is_managed(resource):
        raise ConfigError(f"memory type conversion error, unknown type: {quoted(resource)}")
    try:
        return resource, Quantity.parse(quantity)
    except QuantitySyntaxError as error:
        raise ConfigError(f"failed to parse the quantity: {quantity}") from error
