"""The machine as an SVG: NUMA nodes, cores, memory and devices, each with who has it.

Every CPU and device carries its owner as a letter and a colour, and says the same as its title, so
that colour alone tells nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from numalign.cli.report.markup import Markup, element, joined
from numalign.cli.tables.amounts import bytes_text, is_hugepages
from numalign.cli.tables.ownership import FREE, RESERVED, SHARED, Books, Ownership, ownership_of
from numalign.model.machine import Core, Machine, NumaNode
from numalign.v1 import hint_provider_pb2 as hp

WIDTH = 1120
_GAP = 20
_NODE_WIDTH = (WIDTH - _GAP) // 2
_PAD = 14
_CELL = 30
_CELL_HEIGHT = 26
_CORE_GAP = 8
_LINE = 20
_MEANING = {SHARED: "shared", RESERVED: "reserved for the system", FREE: "free", "": "unknown"}

OWNER_COLOURS = 12
"""How many colours there are; owners beyond share them, each with its own letter."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Markup from the top of a node's box down, and how high it is."""

    markup: Markup
    height: int


def machine_svg(machine: Machine, books: Books) -> Markup:
    """The whole machine, two NUMA nodes beside each other."""
    owners = ownership_of(books)
    nodes = [_node(node, books, owners) for node in machine.numa_nodes]
    boxes = []
    top = 0
    for i in range(0, len(nodes), 2):
        row = nodes[i : i + 2]
        height = max(drawn.height for drawn in row)
        boxes += [
            element(
                "g",
                element("rect", width=_NODE_WIDTH, height=height, rx=10, class_="node"),
                drawn.markup,
                transform=f"translate({column * (_NODE_WIDTH + _GAP)},{top})",
                data_numa_node=machine.numa_nodes[i + column].id,
            )
            for column, drawn in enumerate(row)
        ]
        top += height + _GAP
    homeless = list(_devices(books.device, owners, None))
    if homeless:
        drawn = _stacked([_title("devices without a NUMA node"), *homeless])
        box = element("rect", width=WIDTH, height=drawn.height, rx=10, class_="node")
        boxes.append(element("g", box, drawn.markup, transform=f"translate(0,{top})"))
        top += drawn.height + _GAP
    return element(
        "svg",
        *boxes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {max(top - _GAP, 1)}",
        role="img",
        aria_label="Map of the machine",
        id="machine",
    )


def owner_class(mark: str, owners: Ownership) -> str:
    """The style class of what an owner has."""
    if mark in owners.names:
        return f"owner o{list(owners.names).index(mark) % OWNER_COLOURS}"
    return {SHARED: "shared", RESERVED: "reserved", FREE: "free"}.get(mark, "unknown")


def meaning_of(mark: str, owners: Ownership) -> str:
    """What a mark stands for."""
    return owners.names.get(mark) or _MEANING.get(mark, "unknown")


def _node(node: NumaNode, books: Books, owners: Ownership) -> _Drawn:
    parts = [_title(f"NUMA node {node.id}")]
    if not node.cores:
        parts.append(_label("no CPUs"))
    cores = sorted(node.cores, key=lambda core: (core.socket_id, core.uncore_cache_id or 0))
    for (socket, cache), group in groupby(
        cores, key=lambda core: (core.socket_id, core.uncore_cache_id)
    ):
        place = f"socket {socket}" + ("" if cache is None else f", cache {cache}")
        parts += [_label(place), _cores(tuple(group), owners)]
    parts += _memory(node, books.memory)
    parts += _devices(books.device, owners, node.id)
    return _stacked(parts)


def _stacked(parts: list[_Drawn]) -> _Drawn:
    top = _PAD
    placed = []
    for part in parts:
        placed.append(element("g", part.markup, transform=f"translate({_PAD},{top})"))
        top += part.height
    return _Drawn(joined(*placed), top + _PAD - 6)


def _title(text: str) -> _Drawn:
    return _Drawn(element("text", text, y=14, class_="title"), 26)


def _label(text: str) -> _Drawn:
    return _Drawn(element("text", text, y=12, class_="label"), _LINE)


def _cores(cores: tuple[Core, ...], owners: Ownership) -> _Drawn:
    shapes = []
    x = y = 0
    for core in sorted(cores, key=lambda core: core.threads):
        width = len(core.threads) * _CELL + 4
        if x and x + width > _NODE_WIDTH - 2 * _PAD:
            x, y = 0, y + _CELL_HEIGHT + 4 + _CORE_GAP
        outline = element("rect", width=width, height=_CELL_HEIGHT + 4, rx=5, class_="core")
        cells = [_cpu(cpu, 2 + place * _CELL, owners) for place, cpu in enumerate(core.threads)]
        shapes.append(element("g", outline, *cells, transform=f"translate({x},{y})"))
        x += width + _CORE_GAP
    return _Drawn(joined(*shapes), y + _CELL_HEIGHT + 4 + 10)


def _cpu(cpu: int, x: int, owners: Ownership) -> Markup:
    mark, _ = owners.mark_of_cpu(cpu)
    return element(
        "g",
        element("title", f"CPU {cpu}: {meaning_of(mark, owners)}"),
        element(
            "rect", x=1, y=2, width=_CELL - 2, height=_CELL_HEIGHT, rx=3,
            class_=owner_class(mark, owners),
        ),
        element("text", cpu, x=_CELL / 2, y=13, class_="cell"),
        element("text", mark, x=_CELL / 2, y=24, class_="mark"),
        transform=f"translate({x},0)",
        data_cpu=cpu,
        data_owner=mark,
    )  # fmt: skip


def _memory(node: NumaNode, memory: hp.MemoryState | None) -> Iterator[_Drawn]:
    booked = {n.numa_node: n for n in memory.nodes}.get(node.id) if memory is not None else None
    if booked is None or not booked.tables:
        yield _label(f"memory {bytes_text(node.memory_bytes)} (not managed)")
        return
    for table in sorted(booked.tables, key=lambda t: (is_hugepages(t.resource), t.resource)):
        if not table.total and is_hugepages(table.resource):
            continue
        yield _label(
            f"{table.resource} {bytes_text(table.total)}: {bytes_text(table.reserved)} given out, "
            f"{bytes_text(table.system_reserved)} reserved, {bytes_text(table.free)} free"
        )
        yield _bar(table)


def _bar(table: hp.MemoryTable) -> _Drawn:
    length = _NODE_WIDTH - 2 * _PAD
    total = max(table.total, 1)
    reserved = min(length, length * table.system_reserved / total)
    given = min(length - reserved, length * table.reserved / total)
    return _Drawn(
        element(
            "g",
            element("rect", width=length, height=12, rx=3, class_="free"),
            element("rect", width=f"{reserved:.1f}", height=12, class_="reserved"),
            element("rect", x=f"{reserved:.1f}", width=f"{given:.1f}", height=12, class_="given"),
            data_memory=table.resource,
        ),
        22,
    )


def _devices(
    device: hp.DeviceState | None, owners: Ownership, node: int | None
) -> Iterator[_Drawn]:
    """A row of chips for each resource with devices on `node`; None: on no node at all."""
    for resource in () if device is None else device.resources:
        here = [
            entry
            for entry in resource.devices
            if (node in entry.numa_nodes if node is not None else not entry.numa_nodes)
        ]
        if here:
            yield _label(resource.resource)
            yield _chips(resource.resource, here, owners)


def _chips(resource: str, devices: list[hp.Device], owners: Ownership) -> _Drawn:
    shapes = []
    x = y = 0.0
    for device in devices:
        mark, _ = owners.mark_of_device(resource, device.id)
        shown = device.id if len(device.id) <= 24 else device.id[:23] + "…"
        text = f"{shown} {mark}" if mark != FREE else shown
        width = 7.2 * len(text) + 14
        if x and x + width > _NODE_WIDTH - 2 * _PAD:
            x, y = 0, y + 28
        meaning = meaning_of(mark, owners) + ("" if device.healthy else ", unhealthy")
        kind = owner_class(mark, owners) + ("" if device.healthy else " unhealthy")
        shapes.append(
            element(
                "g",
                element("title", f"{resource} {device.id}: {meaning}"),
                element("rect", width=f"{width:.1f}", height=22, rx=11, class_=kind),
                element("text", text, x=f"{width / 2:.1f}", y=15, class_="cell"),
                transform=f"translate({x:.1f},{y:.1f})",
                data_device=device.id,
                data_owner=mark,
            )
        )
        x += width + 8
    return _Drawn(joined(*shapes), int(y) + 32)
