"""`python tests/bench`: how long decisions take, against their targets, as a table and as JSON.

The exit code says whether everything could be measured, not whether it was fast: a busy
machine must not fail a build.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.console import Console
from rich.table import Table
from tests.bench import (
    admit_bench,
    device_bench,
    family_bench,
    footprint,
    import_bench,
    merge_bench,
    start_bench,
)
from tests.bench.figures import Figure
from tests.bench.processes import Unmeasurable

PARTS = ("five", "one", "devices", "merge", "start", "memory", "import")


def main() -> int:
    """Measure, print, and say whether it worked."""
    options = _options()
    figures: list[Figure] = []
    try:
        for part in options.parts:
            figures += _MEASURES[part](options)
    except Unmeasurable as error:
        sys.stderr.write(f"{error}\n")
        return 1
    Console(width=110).print(_table(figures))
    if options.json is not None:
        options.json.write_text(json.dumps([figure.as_json() for figure in figures], indent=2))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, help=f"of {', '.join(PARTS)}")
    parser.add_argument("--samples", type=int, default=400, help="admissions to time")
    parser.add_argument("--warm-up", type=int, default=100, help="admissions before those")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--directory", type=Path, help="where state files go; short")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


def _five(options: argparse.Namespace) -> list[Figure]:
    return _admit("five processes", admit_bench.five_processes, (1.6, 2.5), options)


def _one(options: argparse.Namespace) -> list[Figure]:
    return _admit("one process", admit_bench.one_process, (3.0, None), options)


def _admit(
    layout: str,
    measure: Callable[[Path, int, int], Coroutine[Any, Any, admit_bench.Compared]],
    targets: tuple[float, float | None],
    options: argparse.Namespace,
) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="na-", dir=options.directory) as directory:
        compared = asyncio.run(measure(Path(directory), options.samples, options.warm_up))
    return [
        Figure(
            name=f"Admit, {layout}, p{round(share * 100)}",
            unit="ms",
            value=compared.product.at(share),
            floor=compared.floor.at(share),
            at_most=target,
        )
        for share, target in zip((0.5, 0.99), targets, strict=True)
    ]


def _devices(options: argparse.Namespace) -> list[Figure]:
    figures = []
    for layout, processes in (("five processes", True), ("one process", False)):
        with tempfile.TemporaryDirectory(prefix="na-", dir=options.directory) as directory:
            compared = asyncio.run(
                device_bench.measure(
                    Path(directory), options.samples, options.warm_up, processes=processes
                )
            )
        figures += [
            Figure(
                name=f"Admit beside updates of 500 devices, {layout}, p{round(share * 100)}",
                unit="ms",
                value=compared.product.at(share),
                floor=compared.floor.at(share),
                at_most=target,
            )
            for share, target in ((0.5, None), (0.99, 1.5))
        ]
    return figures


def _merge(options: argparse.Namespace) -> list[Figure]:
    return [
        Figure(name=f"merge, {case.name}", unit="ms", value=took, at_most=case.at_most)
        for case, took in (*merge_bench.measure(), *family_bench.measure())
    ]


def _start(options: argparse.Namespace) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="na-", dir=options.directory) as directory:
        return start_bench.measure(Path(directory))


def _memory(options: argparse.Namespace) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="na-", dir=options.directory) as directory:
        return footprint.measure(Path(directory))


def _import(options: argparse.Namespace) -> list[Figure]:
    del options
    return import_bench.measure()


_MEASURES = {
    "five": _five,
    "one": _one,
    "devices": _devices,
    "merge": _merge,
    "start": _start,
    "memory": _memory,
    "import": _import,
}


def _table(figures: list[Figure]) -> Table:
    table = Table("", "measured", "floor", "ratio", "target", "", box=None)
    for figure in figures:
        table.add_row(*figure.as_row())
    return table


if __name__ == "__main__":
    sys.exit(main())
