"""The parts of the benchmark by name: what each measures, as figures and curves."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.bench import (
    admit_bench,
    batch_bench,
    big_bench,
    big_node,
    device_bench,
    family_bench,
    footprint,
    growth_bench,
    import_bench,
    merge_bench,
    start_bench,
)
from tests.bench.figures import (
    Curve,
    Figure,
    Measured,
    Target,
    at_least_floors,
    at_most,
    at_most_floors,
)
from tests.bench.times import Compared

_PER_ROUND = 50
"""Of the pods of a part that admits many in a round, one round for so many samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How many admissions are timed, how many go before them, and where state files go."""

    samples: int
    warm_up: int
    directory: Path | None = None


Part: TypeAlias = Callable[[Effort], Measured]


def _five(effort: Effort) -> Measured:
    with _scratch(effort) as scratch:
        compared = asyncio.run(admit_bench.five_processes(scratch, effort.samples, effort.warm_up))
    targets = {0.5: at_most_floors(0.9), 0.99: at_most_floors(2.5)}
    return _admit("Admit, five processes", compared, targets)


def _one(effort: Effort) -> Measured:
    with _scratch(effort) as scratch:
        compared = asyncio.run(admit_bench.one_process(scratch, effort.samples, effort.warm_up))
    return _admit("Admit, one process", compared, {0.5: at_most_floors(2), 0.99: None})


def _devices(effort: Effort) -> Measured:
    measured: list[Figure | Curve] = []
    for layout, processes in (("five processes", True), ("one process", False)):
        with _scratch(effort) as scratch:
            compared = asyncio.run(
                device_bench.measure(scratch, effort.samples, effort.warm_up, processes=processes)
            )
        measured += _admit(
            f"Admit beside updates of 500 devices, {layout}",
            compared,
            {0.5: None, 0.99: at_most_floors(1.5)},
        )
    return measured


def _nodes36(effort: Effort) -> Measured:
    with _scratch(effort) as scratch:
        compared = asyncio.run(
            big_bench.same_pod(scratch, big_node.TWO_OF_36, effort.samples, effort.warm_up)
        )
    name = "Admit, 36 nodes of which 2 have CPUs"
    return _admit(name, compared, {0.5: at_most_floors(1.5), 0.99: None})


def _nodes32(effort: Effort) -> Measured:
    return _scattered(effort, big_node.ALL_OF_32, 50)


def _nodes64(effort: Effort) -> Measured:
    return _scattered(effort, big_node.ALL_OF_64, 200)


def _scattered(effort: Effort, shape: big_node.Shape, limit: float) -> Measured:
    with _scratch(effort) as scratch:
        done = asyncio.run(big_bench.scattered(scratch, shape, effort.samples, effort.warm_up))
    name = f"Admit, {shape.nodes} nodes all with CPUs, fragmented"
    counts = (("not decided", done.undecided), ("not proved", done.unproved))
    return [
        *_admit(name, done.compared, {0.5: None, 0.99: at_most(limit)}),
        *(
            Figure(name=f"{name}: {how}", unit="", value=count, target=at_most(0))
            for how, count in counts
        ),
    ]


def _batch(effort: Effort) -> Measured:
    measured = []
    for layout, processes, target in (
        ("five processes", True, at_least_floors(1.5)),
        ("one process", False, None),
    ):
        with _scratch(effort) as scratch:
            rates = asyncio.run(
                batch_bench.measure(
                    scratch, max(1, effort.samples // _PER_ROUND), processes=processes
                )
            )
        measured.append(
            Figure(
                name=f"{batch_bench.PODS} pods by AdmitPods against one by one, {layout}",
                unit="pods/s",
                value=rates.stream,
                floor=rates.one_by_one,
                target=target,
                more_is_better=True,
            )
        )
    return measured


def _growth(effort: Effort) -> Measured:
    measured: list[Figure | Curve] = []
    for layout, processes in (("five processes", True), ("one process", False)):
        with _scratch(effort) as scratch:
            times = asyncio.run(
                growth_bench.measure(scratch, effort.samples, effort.warm_up, processes=processes)
            )
        fewest, *more = growth_bench.LEVELS
        measured += [
            Figure(
                name=f"Admit beside {level} pods against {fewest}, {layout}, p50",
                unit="ms",
                value=times[level].at(0.5),
                floor=times[fewest].at(0.5),
                target=at_most_floors(1.2),
            )
            for level in more
        ]
        points = tuple((level, taken.at(0.5)) for level, taken in times.items())
        measured.append(Curve(plot="growth", name=layout, points=points))
    return measured


def _merge(effort: Effort) -> Measured:
    del effort
    return [*merge_bench.measure(), *family_bench.measure()]


def _start(effort: Effort) -> Measured:
    with _scratch(effort) as scratch:
        return start_bench.measure(scratch)


def _memory(effort: Effort) -> Measured:
    with _scratch(effort) as scratch:
        return footprint.measure(scratch)


def _import(effort: Effort) -> Measured:
    del effort
    return import_bench.measure()


PARTS: Mapping[str, Part] = {
    "five": _five,
    "one": _one,
    "batch": _batch,
    "growth": _growth,
    "nodes36": _nodes36,
    "nodes32": _nodes32,
    "nodes64": _nodes64,
    "merge": _merge,
    "devices": _devices,
    "start": _start,
    "memory": _memory,
    "import": _import,
}


def _admit(
    name: str, compared: Compared, targets: Mapping[float, Target | None]
) -> list[Figure | Curve]:
    """One figure for each share of the times, and both distributions."""
    return [
        *(
            Figure(
                name=f"{name}, p{round(share * 100)}",
                unit="ms",
                value=compared.product.at(share),
                floor=compared.floor.at(share),
                target=target,
            )
            for share, target in targets.items()
        ),
        Curve(plot="latency", name=name, points=compared.product.points),
        Curve(plot="latency", name=f"{name}: floor", points=compared.floor.points),
    ]


@contextmanager
def _scratch(effort: Effort) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="na-", dir=effort.directory) as scratch:
        yield Path(scratch)
