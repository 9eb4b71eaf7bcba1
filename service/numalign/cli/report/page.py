"""The page: what the node is, the map of its machine, who is on it, and whom it refused. Pure.

It loads nothing and runs nothing: a policy in its head forbids both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from numalign.cli.report.fragmentation import scattered
from numalign.cli.report.machine_svg import machine_svg, meaning_of, owner_class
from numalign.cli.report.markup import Content, Markup, element, joined
from numalign.cli.report.style import STYLE
from numalign.cli.snapshot.values import NodeSnapshot
from numalign.cli.tables.allocation import cpus_cell, devices_cell, memory_cell
from numalign.cli.tables.amounts import amount_text
from numalign.cli.tables.explanation import with_names
from numalign.cli.tables.ownership import FREE, RESERVED, SHARED, Ownership, ownership_of
from numalign.model.machine import Machine
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb

MOST_REFUSALS = 50

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_VERDICTS = {pb.VERDICT_REJECTED: "rejected", pb.VERDICT_DEFERRED: "not yet"}


def report_page(node: NodeSnapshot, problems: Sequence[str] = ()) -> str:
    """The whole page; `problems` say what of the node is missing."""
    owners = ownership_of(node.books)
    title = f"numalign: {node.node}"
    body = element(
        "main",
        element("h1", node.node),
        _facts(node),
        _problems(node, problems),
        element("h2", "Machine"),
        element("div", machine_svg(node.machine, node.books), class_="map"),
        _legend(owners),
        _distances(node.machine),
        element("h2", "Fragmentation"),
        _fragmentation(node),
        element("h2", "Pods"),
        _pods(node),
        element("h2", "Recent refusals"),
        _refusals(node),
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    return "<!DOCTYPE html>\n" + element("html", head, element("body", body), lang="en").text + "\n"


def _facts(node: NodeSnapshot) -> Markup:
    configuration = node.configuration
    machine = node.machine
    version = next((status.version for status in node.services.values()), "unknown")
    facts: dict[str, str | int] = {
        "taken": node.taken,
        "policy": f"{configuration.get('topologyManagerPolicy')}, scope "
        f"{configuration.get('topologyManagerScope')}",
        "CPU manager": f"{configuration.get('cpuManagerPolicy')}",
        "memory manager": f"{configuration.get('memoryManagerPolicy')}",
        "machine": f"{len(machine.numa_nodes)} NUMA nodes, {machine.socket_count()} sockets, "
        f"{machine.cpu_count()} CPUs",
        "pods": len(node.admissions),
        "shared CPUs": node.shared_cpus or "-",
        "revision": node.revision,
        "numalign": version,
    }
    pairs = [
        element("div", element("dt", key), element("dd", value)) for key, value in facts.items()
    ]
    return element("dl", *pairs, class_="facts")


def _problems(node: NodeSnapshot, problems: Sequence[str]) -> Markup:
    found = [
        *problems,
        *(f"{p.name} provider: {p.last_error}" for p in node.providers if p.last_error),
        *dict.fromkeys(report for s in node.services.values() for report in s.reports),
        *(
            f"{admitted.record.namespace}/{admitted.record.name}: {problem}"
            for admitted in node.admissions
            for problem in admitted.record.problems
        ),
    ]
    if not found:
        return joined()
    return element("ul", *(element("li", problem) for problem in found), class_="problems")


def _legend(owners: Ownership) -> Markup:
    marks = [SHARED, RESERVED, FREE, *owners.names]
    return element(
        "ul",
        *(
            element(
                "li",
                element("span", mark, class_=f"swatch {owner_class(mark, owners)}"),
                meaning_of(mark, owners),
            )
            for mark in marks
        ),
        class_="legend",
    )


def _distances(machine: Machine) -> Markup:
    """The matrix as the kernel tells it, folded; nothing where no node reports any."""
    if not any(node.distances for node in machine.numa_nodes):
        return joined()
    ids = machine.node_ids()
    rows = [
        (f"node {node.id}", *map(str, node.distances or [""] * len(ids)))
        for node in machine.numa_nodes
    ]
    summary = element("summary", "Distances between NUMA nodes")
    return element("details", summary, _table(("from, to", *map(str, ids)), rows))


def _fragmentation(node: NodeSnapshot) -> Markup:
    rows = [
        (
            one.resource,
            amount_text(one.resource, one.free),
            amount_text(one.resource, one.largest),
            "-" if one.node is None else f"node {one.node}",
            f"{one.share:.0%}",
        )
        for one in scattered(node.resources)
    ]
    return joined(
        element(
            "p",
            "What one container could get from one NUMA node alone, against what all nodes could "
            "give together. What no single node can give is scattered.",
        ),
        _table(("resource", "free", "largest on one node", "where", "scattered"), rows),
    )


def _pods(node: NodeSnapshot) -> Markup:
    rows: list[tuple[Content, ...]] = []
    for record in (admitted.record for admitted in node.admissions):
        name: Content = f"{record.namespace}/{record.name}"
        whole = record.pod_allocation
        if whole.cpus or whole.memory:
            rows.append((name, "(the pod)", cpus_cell(whole.cpus), memory_cell(whole.memory), "-"))
            name = ""
        for held in record.allocations:
            cells = (cpus_cell(held.cpus), memory_cell(held.memory), devices_cell(held))
            rows.append((name, held.container, *cells))
            name = ""
    if not rows:
        return element("p", "No pods are admitted.")
    return _table(("pod", "container", "CPUs", "memory", "devices"), rows)


def _refusals(node: NodeSnapshot) -> Markup:
    refused = [d for d in node.decisions if d.verdict in _VERDICTS][:MOST_REFUSALS]
    if not refused:
        return element("p", "None is in the journal.")
    first, *others = (_refusal(decision, node.names) for decision in refused)
    return joined(
        element("details", first, open=""), *(element("details", other) for other in others)
    )


def _refusal(decision: dc.DecisionRecord, names: Mapping[str, str]) -> Markup:
    """What a fold has in it; its head stays when it is folded."""
    times = "" if decision.times < 2 else f", {decision.times} times"
    word = _VERDICTS[decision.verdict]
    head = element(
        "summary",
        element("b", f"{decision.namespace}/{decision.name}"),
        f" {word} ",
        element("code", decision.reason or decision.handler),
        element("span", f" {decision.last_time.ToJsonString()[:19]}Z{times}", class_="dim"),
        data_decision=decision.number,
    )
    why = decision.explanation.summary
    return joined(
        head,
        element("p", decision.message),
        element("p", with_names(why, names)) if why else "",
        *(_obstacle(obstacle, names) for obstacle in decision.explanation.obstacles),
    )


def _obstacle(obstacle: pb.Obstacle, names: Mapping[str, str]) -> Markup:
    rows = [
        (
            fact.resource,
            amount_text(fact.resource, fact.requested),
            f"node {node.numa_node}",
            amount_text(fact.resource, node.capacity),
            amount_text(fact.resource, node.reserved),
            amount_text(fact.resource, node.free),
            ", ".join(
                f"{names.get(holder.pod_uid, holder.pod_uid)}"
                f"{'/' + holder.container if holder.container else ''} "
                f"{amount_text(fact.resource, holder.amount)}"
                for holder in node.holders
            )
            or "-",
        )
        for fact in obstacle.facts
        for node in fact.nodes
    ]
    if not rows:
        return joined()
    heads = ("resource", "asked", "where", "capacity", "reserved", "free", "held by")
    return _table(heads, rows)


def _table(heads: Iterable[str], rows: Iterable[Iterable[Content]]) -> Markup:
    head = element("tr", *(element("th", head) for head in heads))
    body = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
    table = element("table", element("thead", head), element("tbody", *body))
    return element("div", table, class_="scroll")
