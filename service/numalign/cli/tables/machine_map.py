"""The NUMA map: which CPUs, memory and devices each node has, and who owns them.

Pure: it draws a machine and, where the services answered, their books.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from numalign.cli.tables.amounts import bytes_text, is_hugepages
from numalign.cli.tables.fitting import Fitting
from numalign.cli.tables.ownership import FREE, RESERVED, SHARED, Books, Ownership, ownership_of
from numalign.model.machine import Core, Machine, NumaNode
from numalign.v1 import hint_provider_pb2 as hp

_BAR = 24
_SHORT_BAR = 10
_KIB = 1024


def machine_parts(machine: Machine, books: Books) -> Iterator[RenderableType]:
    """Everything to print about a machine."""
    owners = ownership_of(books)
    yield _headline(machine)
    for node in machine.numa_nodes:
        yield Text()
        yield from _node(node, books, owners)
    homeless = [text for text in _devices(books.device, owners, None) if text.plain]
    if homeless:
        yield Text("\ndevices without a NUMA node", style="bold")
        yield from homeless
    if any(node.distances for node in machine.numa_nodes):
        yield Text("\ndistances", style="bold")
        yield distances_table(machine)
    if books.cpu is not None or owners.names:
        yield Text()
        yield _legend(books, owners)


def _headline(machine: Machine) -> Text:
    cores = sum(len(node.cores) for node in machine.numa_nodes)
    memory = sum(node.memory_bytes for node in machine.numa_nodes)
    return Text(
        f"{counted(len(machine.numa_nodes), 'NUMA node')}, "
        f"{counted(machine.socket_count(), 'socket')}, {counted(cores, 'core')}, "
        f"{counted(machine.cpu_count(), 'CPU')}, {bytes_text(memory)} memory",
        style="bold",
    )


def counted(number: int, word: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _node(node: NumaNode, books: Books, owners: Ownership) -> Iterator[RenderableType]:
    yield Text(f"NUMA node {node.id}", style="bold")
    if not node.cores:
        yield Text("  no CPUs")
    for (socket, cache), cores in groupby(
        sorted(node.cores, key=lambda core: (core.socket_id, core.uncore_cache_id or 0)),
        key=lambda core: (core.socket_id, core.uncore_cache_id),
    ):
        place = f"socket {socket}" + ("" if cache is None else f", cache {cache}")
        yield _cores(place, tuple(cores), owners)
    yield Fitting(
        partial(memory_table, node, books.memory),
        lambda: (memory_table(node, books.memory, _SHORT_BAR),),
    )
    yield from _devices(books.device, owners, node.id)


def _cores(place: str, cores: Iterable[Core], owners: Ownership) -> Text:
    line = Text(f"  {place:<18}")
    for core in sorted(cores, key=lambda core: core.threads):
        line.append("[")
        for position, cpu in enumerate(core.threads):
            mark, style = owners.mark_of_cpu(cpu)
            line.append(" " if position else "")
            line.append(f"{cpu}{mark}", style=style)
        line.append("] ")
    return line


def memory_table(node: NumaNode, memory: hp.MemoryState | None, bar: int = _BAR) -> Table:
    """A bar for memory and for each size of huge pages, from the books or the machine alone.

    `bar` is how many characters it is long.
    """
    table = Table(box=None, show_header=False, pad_edge=False)
    booked = {n.numa_node: n for n in memory.nodes}.get(node.id) if memory is not None else None
    if booked is not None and booked.tables:
        shown = [row for row in booked.tables if row.total or not is_hugepages(row.resource)]
        for row in sorted(shown, key=_memory_first):
            table.add_row(
                f"  {row.resource}",
                bytes_text(row.total),
                _bar(row, bar),
                f"{bytes_text(row.reserved)} given out, {bytes_text(row.system_reserved)} "
                f"reserved, {bytes_text(row.free)} free",
            )
        return table
    pools = sum(pool.page_size_kib * _KIB * pool.count for pool in node.hugepages)
    table.add_row("  memory", bytes_text(node.memory_bytes - pools), "", "")
    for pool in node.hugepages:
        if not pool.count:
            continue
        size = pool.page_size_kib * _KIB
        table.add_row(
            f"  hugepages-{bytes_text(size)}",
            bytes_text(size * pool.count),
            "",
            counted(pool.count, "page"),
        )
    return table


def _memory_first(row: hp.MemoryTable) -> tuple[bool, str]:
    return is_hugepages(row.resource), row.resource


def _bar(row: hp.MemoryTable, length: int) -> Text:
    """`x` stands for what is reserved for the system, `#` for what is given out."""
    total = max(row.total, 1)
    reserved = min(length, -(-row.system_reserved * length // total))
    given = min(length - reserved, -(-row.reserved * length // total))
    return Text.assemble(
        "[",
        ("x" * reserved, "dim"),
        ("#" * given, "cyan"),
        "." * (length - reserved - given),
        "]",
    )


def _devices(device: hp.DeviceState | None, owners: Ownership, node: int | None) -> Iterator[Text]:
    """A line for each resource with devices on `node`; None: with devices on no node at all."""
    if device is None:
        return
    for resource in device.resources:
        line = Text(f"  {resource.resource}: ")
        found = False
        for entry in resource.devices:
            on_node = node in entry.numa_nodes if node is not None else not entry.numa_nodes
            if not on_node:
                continue
            found = True
            mark, style = owners.mark_of_device(resource.resource, entry.id)
            line.append(f"{entry.id}{mark}", style=style if entry.healthy else "red")
            line.append(" " if entry.healthy else " (unhealthy) ")
        if found:
            yield line


def distances_table(machine: Machine) -> Table:
    """The matrix as the kernel tells it; a node that reports none has an empty row."""
    ids = machine.node_ids()
    table = Table("from/to", *map(str, ids), box=None)
    for node in machine.numa_nodes:
        row = node.distances or ()
        table.add_row(str(node.id), *(str(row[i]) if i < len(row) else "" for i in range(len(ids))))
    return table


def _legend(books: Books, owners: Ownership) -> RenderableType:
    table = Table(box=None, show_header=False, pad_edge=False)
    marks: Mapping[str, str] = {
        SHARED: "shared by containers without CPUs of their own",
        RESERVED: "reserved for the system",
        FREE: "a device that nobody holds",
    }
    if books.cpu is None:
        marks = {FREE: marks[FREE]}
    for mark, meaning in marks.items():
        table.add_row(f"  {mark}", meaning)
    for mark, name in owners.names.items():
        table.add_row(Text(f"  {mark}", style=owners.style_of(mark)), name)
    return table
