"""The choice of CPUs out of an offered set, vector by vector, to the last CPU id."""

from __future__ import annotations

import pytest
from tests.conformance.scenario_pods import Json, load_unit

from numalign.cpu.accumulator import AssignmentError
from numalign.cpu.order import averaged_layout
from numalign.cpu.take_distributed import take_distributed
from numalign.cpu.take_packed import take_packed
from numalign.cpu.topology import CpuTopology, Thread, topology_of
from numalign.model.cpu_set import CpuSet

VECTORS = load_unit("cpu_assignment")
CATEGORIES = sorted({vector["category"] for vector in VECTORS})


def topology_from_vector(rows: list[Json]) -> CpuTopology:
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


def decide(vector: Json) -> Json:
    given = vector["input"]
    layout = averaged_layout(topology_from_vector(given["topology"]))
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


def test_vectors_are_all_there() -> None:
    assert len(VECTORS) == 4423


@pytest.mark.parametrize("category", CATEGORIES)
def test_choice_is_the_recorded_one(category: str) -> None:
    wrong = {
        vector["id"]: (vector["expected"], decided)
        for vector in VECTORS
        if vector["category"] == category and (decided := decide(vector)) != vector["expected"]
    }

    assert wrong == {}
