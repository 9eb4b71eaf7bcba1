"""Coverage-guided executions of one target: a process of its own, started by the driver.

`python -m tests.fuzz.with_atheris TARGET RUNS SECONDS SEED REPORT`. Separate because the engine
takes over its process, watches the code that it imports, and ends without returning.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import atheris
from tests.fuzz.tally import Tally

SLOWEST_SECONDS = 20
"""An input that takes longer ends the process, and so is found."""


def main() -> None:
    """Execute until there were enough, then write the report."""
    name, runs, seconds, seed, report = sys.argv[1:]
    with atheris.instrument_imports(include=["numalign"]):
        from tests.fuzz.catalogue import target  # noqa: PLC0415 - imported under the engine's eyes

        found = target(name)
    tally = Tally(found, "atheris")
    most, started = int(runs), time.monotonic()
    until = started + float(seconds)

    def execute(data: bytes) -> None:
        tally.execute(data)
        count = tally.report.executions
        if count >= most or (count % 256 == 0 and time.monotonic() > until):
            tally.finish(time.monotonic() - started).write(Path(report))
            os._exit(0)

    # Beside the report: this process ends without a chance to tidy up, its parent does.
    corpus = Path(report).parent / "corpus"
    corpus.mkdir()
    for number, each in enumerate(found.seeds):
        (corpus / str(number)).write_bytes(each)
    arguments = [
        sys.argv[0],
        f"-seed={seed}",
        f"-max_len={found.most_bytes}",
        f"-timeout={SLOWEST_SECONDS}",
        f"-artifact_prefix={Path(report).parent}/",
        "-verbosity=0",
        str(corpus),
    ]
    atheris.Setup(arguments, execute)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
