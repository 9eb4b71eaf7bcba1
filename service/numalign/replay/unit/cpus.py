"""Runners of `cpu_assignment` and `cpuset` records."""

from __future__ import annotations

from numalign.cpu.accumulator import AssignmentError
from numalign.cpu.order import averaged_layout
from numalign.cpu.take_distributed import take_distributed
from numalign.cpu.take_packed import take_packed
from numalign.cpu.topology import CpuTopology, Thread, topology_of
from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError
from numalign.replay.recordings import Json


def cpu_assignment_answer(record: Json) -> Json:
    """The CPUs chosen out of the available ones, or the error."""
    given = record["input"]
    layout = averaged_layout(_topology(given["topology"]))
    offered = CpuSet.parse(given["available"]).bits
    spread = given["sorting"] == "spread"
    try:
        if given["algorithm"] == "distributed":
            chosen = take_distributed(
                layout, offered, given["num_cpus"], group=given["cpu_group_size"], spread=spread
            )
        else:
            chosen = take_packed(
                layout,
                offered,
                given["num_cpus"],
                spread=spread,
                uncore=given["prefer_align_by_uncore_cache"],
            )
    except AssignmentError as error:
        return {"error": str(error)}
    return {"cpus": str(CpuSet(chosen))}


def cpuset_answer(record: Json) -> Json:
    """A CPU list read or written (CPU-30)."""
    given = record["input"]
    if given["op"] == "format":
        cpus = CpuSet.of(given["cpus"])
        return {"string": str(cpus), "size": len(cpus)}
    try:
        cpus = CpuSet.parse(given["text"])
    except CpuSetSyntaxError as error:
        return {"error": str(error)}
    return {"cpus": list(cpus), "string": str(cpus), "size": len(cpus)}


def _topology(rows: list[Json]) -> CpuTopology:
    threads = {
        row["cpu"]: Thread(
            node=row["numa"], socket=row["socket"], core=row["core"], uncore=row["uncore_cache"]
        )
        for row in rows
    }
    return topology_of(
        threads,
        num_cpus=len(rows),
        num_sockets=len({row["socket"] for row in rows}),
        num_cores=len({row["core"] for row in rows}),
    )
