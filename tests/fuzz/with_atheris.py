"""Coverage-guided executions of one target: a process of its own, started by the driver.

`python -m tests.fuzz.with_atheris TARGET RUNS SECONDS SEED REPORT`. Separate because the engine
takes over its process, watches the code that it imports, and ends without returning.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import atheris
from tests.fuzz.tally import Tally

SLOWEST_SECONDS = 20
"""An input that takes longer ends the process, and so is found."""


class Places:
    """The places in the code that one execution reached, each of them told to the engine once.

    Telling takes longer than most of what parsers do, and a loop passes its places many times.
    """

    def __init__(self) -> None:
        self.known: set[int] = set()
        self._reached: set[int] = set()
        self._tell: Callable[[int], None] | None = None

    def collect(self) -> None:
        """Collect from now on. The engine sets its own function up before the first execution."""
        if self._tell is None:
            self._tell = atheris._trace_branch
            atheris._trace_branch = self._reached.add

    def report(self) -> None:
        """Tell the engine what was reached, and begin anew."""
        assert self._tell is not None
        for place in self._reached:
            self._tell(place)
        self.known |= self._reached
        self._reached.clear()


def main() -> None:
    """Execute until there were enough, then write the report."""
    name, runs, seconds, seed, report = sys.argv[1:]
    with atheris.instrument_imports(include=["numalign"]):
        from tests.fuzz.catalogue import target  # noqa: PLC0415 - imported under the engine's eyes

        found = target(name)
    tally = Tally(found, "atheris")
    most, started = int(runs), time.monotonic()
    until = started + float(seconds)

    places = Places()

    def execute(data: bytes) -> None:
        places.collect()
        tally.execute(data)
        places.report()
        count = tally.report.executions
        if count >= most or (count % 256 == 0 and time.monotonic() > until):
            if not places.known:
                raise RuntimeError("nothing that was executed was watched by the engine")
            tally.finish(time.monotonic() - started, len(places.known)).write(Path(report))
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
