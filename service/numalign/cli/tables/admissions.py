"""Who is admitted, and what each container holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from numalign.cli.tables.allocation import (
    allocation_table,
    cpus_cell,
    devices_cell,
    memory_cell,
)
from numalign.cli.tables.fitting import Fitting
from numalign.v1 import types_pb2 as pb


def admissions(records: Sequence[pb.AdmissionRecord]) -> RenderableType:
    """The pods as a table, or one below the other where there is no room for that."""
    return Fitting(partial(admissions_table, records), partial(_one_by_one, records))


def _one_by_one(records: Iterable[pb.AdmissionRecord]) -> Iterator[RenderableType]:
    for record in records:
        about = f"  {record.owner}, {record.qos_class}, config {record.config_generation}"
        yield Text.assemble((f"{record.namespace}/{record.name}", "bold"), about)
        table = allocation_table(record.allocations, record.pod_allocation)
        yield Padding(table, (0, 0, 0, 2), expand=False)


def admissions_table(records: Iterable[pb.AdmissionRecord]) -> Table:
    """A row for each container, the pod's own columns on its first one.

    `config` is the number of the configuration that placed the pod.
    """
    table = Table(
        "pod", "owner", "QoS", "config", "container", "CPUs", "memory", "devices", box=None
    )
    for record in records:
        name, generation = f"{record.namespace}/{record.name}", str(record.config_generation)
        pod = [name, record.owner, record.qos_class, generation]
        whole = record.pod_allocation
        if whole.cpus or whole.memory:
            table.add_row(*pod, "(the pod)", cpus_cell(whole.cpus), memory_cell(whole.memory), "-")
            pod = [""] * 4
        for held in record.allocations:
            table.add_row(
                *pod,
                held.container,
                cpus_cell(held.cpus),
                memory_cell(held.memory),
                devices_cell(held),
            )
            pod = [""] * 4
    for column in table.columns:
        column.overflow = "fold"
    return table
