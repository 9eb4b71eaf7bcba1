"""`python -m tests.fuzz`: made-up inputs for every parser; only documented errors may come out.

Prints a table of targets and executions, and everything that should not have happened. The
exit code is 1 if there was any of that.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.catalogue import NAMES
from tests.fuzz.tally import Report

ROOT = Path(__file__).parents[2]
GRACE_SECONDS = 120.0
"""For imports, seeds and the end, on top of the time for executions."""

WIDTHS = "{:<22} {:>10} {:>11} {:>9} {:>7} {:>10}  {}"


def main() -> int:
    """Run the targets, print what came out."""
    options = _options()
    has_engine = find_spec("atheris") is not None
    if not has_engine:
        _say(
            "There is no atheris for this Python on this machine: "
            "hypothesis makes up the inputs, without looking at coverage."
        )
    engine = "tests.fuzz.with_atheris" if has_engine else "tests.fuzz.with_hypothesis"
    _say(f"seed {options.seed}")
    heads = ("target", "engine", "executions", "seconds", "places", "unexpected", "documented")
    _say(WIDTHS.format(*heads))
    failures: list[str] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda name: _run(engine, name, options), options.target or NAMES)
        for outcome in outcomes:
            if isinstance(outcome, str):
                failures.append(outcome)
                continue
            _say(_line(outcome))
            failures += [
                f"{outcome.target}: {place}\n    input {data}"
                for place, data in outcome.unexpected.items()
            ]
    for failure in failures:
        _say(failure)
    return 1 if failures else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _run(engine: str, name: str, options: argparse.Namespace) -> Report | str:
    """The report of one target; what the process last said if it left none."""
    with tempfile.TemporaryDirectory(prefix="na-fuzz-") as directory:
        path = Path(directory) / "report.json"
        arguments = [name, str(options.runs), str(options.seconds), str(options.seed), str(path)]
        done = subprocess.run(
            [sys.executable, "-m", engine, *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=options.seconds + GRACE_SECONDS,
            check=False,
        )
        if path.exists():
            return Report.read(path)
        culprits = [
            f"    {each.name}: {each.read_bytes().hex()}"
            for each in Path(directory).iterdir()
            if each.is_file()
        ]
        return "\n".join(
            (f"{name}: ended with {done.returncode}", done.stderr[-2000:].strip(), *culprits)
        )


def _line(report: Report) -> str:
    documented = ", ".join(f"{name} {count:,}" for name, count in report.raised.items())
    return WIDTHS.format(
        report.target,
        report.engine,
        f"{report.executions:,}",
        f"{report.seconds:.0f}",
        "-" if report.places is None else f"{report.places:,}",
        len(report.unexpected),
        documented or "none",
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", action="append", choices=NAMES, help="one of the parsers")
    parser.add_argument("--runs", type=int, default=1_000_000, help="executions per parser")
    parser.add_argument("--seconds", type=float, default=3600.0, help="longest time per parser")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 2**31))
    parser.add_argument("--jobs", type=int, default=1, help="parsers at a time")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
