"""The machine as a document: the schema that machine files, configurations and recordings share.

numa_nodes:
- id: 0
  memory_bytes: 17179869184
  hugepages: [{page_size_kib: 2048, count: 64}]
  distances: [10, 21]
  cores: [{id: 0, socket_id: 0, threads: [0, 8], uncore_cache_id: 0}]
num_cpus: 16      # optional, as are num_sockets and every list
"""

from __future__ import annotations

from numalign.document.problems import Problems
from numalign.document.section import Section
from numalign.model.cpu_set import CpuSet
from numalign.model.machine import Core, HugePages, Machine, NumaNode
from numalign.model.numa_mask import MAX_NUMA_ID

_MACHINE_KEYS = ("numa_nodes", "num_cpus", "num_sockets")
_NODE_KEYS = ("id", "memory_bytes", "hugepages", "distances", "cores")
_CORE_KEYS = ("id", "socket_id", "threads", "uncore_cache_id")
_HUGE_PAGE_KEYS = ("page_size_kib", "count")
_LARGEST_CPU = (1 << 20) - 1


def machine_from_document(document: object, path: str = "") -> Machine:
    """The machine that a document describes; `path` leads to it, for problems.

    Raises DocumentError naming every mistake.
    """
    problems = Problems()
    machine = read_machine_section(Section(document, path, problems))
    problems.refuse()
    return machine


def read_machine_section(section: Section) -> Machine:
    """The machine in `section`; mistakes are recorded in its problems.

    Refused are unknown keys, no NUMA node at all, a NUMA id above 63 or given twice, and a
    CPU id given twice.
    """
    section.refuse_unknown(_MACHINE_KEYS)
    nodes = tuple(_node(node) for node in section.sections("numa_nodes"))
    if not nodes and not section.problems:
        section.wrong("numa_nodes", "must name at least one node")
    _refuse_repeated(section, nodes)
    return Machine(
        numa_nodes=nodes,
        num_cpus=_optional_count(section, "num_cpus"),
        num_sockets=_optional_count(section, "num_sockets"),
    )


def document_of_machine(machine: Machine) -> dict[str, object]:
    """The document that describes `machine`; reading it gives an equal machine."""
    document: dict[str, object] = {
        "numa_nodes": [
            {
                "id": node.id,
                "memory_bytes": node.memory_bytes,
                "hugepages": [
                    {"page_size_kib": pool.page_size_kib, "count": pool.count}
                    for pool in node.hugepages
                ],
                "distances": None if node.distances is None else list(node.distances),
                "cores": [
                    {
                        "id": core.id,
                        "socket_id": core.socket_id,
                        "threads": list(core.threads),
                        "uncore_cache_id": core.uncore_cache_id,
                    }
                    for core in node.cores
                ],
            }
            for node in machine.numa_nodes
        ]
    }
    if machine.num_cpus is not None:
        document["num_cpus"] = machine.num_cpus
    if machine.num_sockets is not None:
        document["num_sockets"] = machine.num_sockets
    return document


def _node(section: Section) -> NumaNode:
    section.refuse_unknown(_NODE_KEYS)
    node_id = section.required_integer("id", 0)
    if node_id > MAX_NUMA_ID:
        section.wrong("id", f"NUMA node {node_id}: ids above {MAX_NUMA_ID} are not supported")
    distances = section.integers("distances") if "distances" in section else None
    return NumaNode(
        id=node_id,
        memory_bytes=section.integer("memory_bytes", 0, 0),
        hugepages=tuple(_pool(pool) for pool in section.sections("hugepages")),
        distances=distances,
        cores=tuple(_core(core) for core in section.sections("cores")),
    )


def _pool(section: Section) -> HugePages:
    section.refuse_unknown(_HUGE_PAGE_KEYS)
    return HugePages(
        page_size_kib=section.required_integer("page_size_kib", 1),
        count=section.required_integer("count", 0),
    )


def _core(section: Section) -> Core:
    section.refuse_unknown(_CORE_KEYS)
    threads = section.integers("threads")
    if any(not 0 <= thread <= _LARGEST_CPU for thread in threads):
        section.wrong("threads", f"CPU ids must lie between 0 and {_LARGEST_CPU}")
        threads = ()
    uncore = section.integer("uncore_cache_id", 0) if "uncore_cache_id" in section else None
    return Core(
        id=section.required_integer("id", 0),
        socket_id=section.required_integer("socket_id", -1),
        threads=threads,
        uncore_cache_id=uncore,
    )


def _optional_count(section: Section, key: str) -> int | None:
    return section.integer(key, 0, 0) if key in section else None


def _refuse_repeated(section: Section, nodes: tuple[NumaNode, ...]) -> None:
    seen_nodes: set[int] = set()
    seen_cpus = CpuSet()
    for index, node in enumerate(nodes):
        path = f"{section.at('numa_nodes')}[{index}]"
        if node.id in seen_nodes:
            section.problems.add(f"{path}.id", f"NUMA node {node.id} is given twice")
        seen_nodes.add(node.id)
        for position, core in enumerate(node.cores):
            for cpu in core.threads:
                if cpu in seen_cpus:
                    section.problems.add(
                        f"{path}.cores[{position}].threads", f"CPU {cpu} is given twice"
                    )
                seen_cpus |= CpuSet(1 << cpu)
