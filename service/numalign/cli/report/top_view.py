"""A node at a glance: who sits where, and what was decided last. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from numalign.cli.snapshot.values import NodeSnapshot
from numalign.cli.tables.journal import decisions as decisions_part
from numalign.cli.tables.machine_map import counted, machine_parts


def top_parts(
    node: NodeSnapshot, problems: Sequence[str], decisions: int
) -> Iterator[RenderableType]:
    """The head, the map with its owners, the last decisions, and what is missing."""
    yield _head(node)
    yield Text()
    yield from machine_parts(node.machine, node.books)
    yield Text("\nlast decisions", style="bold")
    last = node.decisions[:decisions]
    yield decisions_part(last, node.names) if last else Text("  none in the journal")
    for problem in problems:
        yield Text(problem, style="red")
    for provider in node.providers:
        if provider.last_error:
            yield Text(f"{provider.name} provider: {provider.last_error}", style="red")


def _head(node: NodeSnapshot) -> Text:
    policy = node.configuration.get("topologyManagerPolicy")
    scope = node.configuration.get("topologyManagerScope")
    resources = node.resources
    # Without the CPU provider nobody knows.
    free = (
        f"{counted(resources.cpus.free, 'CPU')} free"
        if resources.HasField("cpus")
        else "CPUs unknown"
    )
    return Text.assemble(
        (node.node, "bold"),
        f"  {node.taken}  policy {policy}, scope {scope}  "
        f"{counted(len(node.admissions), 'pod')}  {free}  revision {node.revision}",
    )
