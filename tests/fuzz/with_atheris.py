"""Coverage-guided executions of one target: a process of its own, started by the driver.

`python -m tests.fuzz.with_atheris TARGET RUNS SECONDS SEED REPORT`. Separate because the engine
takes over its process, watches the code that it imports, and ends without returning.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import atheris
from tests.fuzz.tally import Tally

WATCHED = ("numalign", "numalign_agent", "numalign_client")
"""The packages whose code is looked at."""

SLOWEST_SECONDS = 20
"""An input that takes longer ends the process, and so is found."""

MOST_COUNTED = 128
"""The engine makes no difference between this and more."""


class Places:
    """The places in the code that executions reach; the engine is told of them after each.

    Telling takes longer than most of what parsers do, and loops pass the same places many times.
    Without `counts` the engine is told of each place once, however often it was passed.
    """

    def __init__(self, *, counts: bool) -> None:
        self.known: set[int] = set()
        self._counts = counts
        self._passed: list[int] = []
        self._tell: Callable[[int], None] | None = None

    def collect(self) -> None:
        """Collect from now on. The engine sets its own function up before the first execution."""
        if self._tell is None:
            self._tell = atheris._trace_branch
            atheris._trace_branch = self._passed.append

    def report(self) -> None:
        """Tell the engine what was passed, and begin anew."""
        assert self._tell is not None
        passed = Counter(self._passed) if self._counts else dict.fromkeys(self._passed, 1)
        for place, count in passed.items():
            for _ in range(min(count, MOST_COUNTED)):
                self._tell(place)
        self.known.update(passed)
        self._passed.clear()


def main() -> None:
    """Execute until there were enough, then write the report."""
    name, runs, seconds, seed, report = sys.argv[1:]
    with atheris.instrument_imports(include=WATCHED):
        from tests.fuzz.catalogue import target  # noqa: PLC0415 - imported under the engine's eyes

        found = target(name)
    tally = Tally(found, "atheris")
    most, started = int(runs), time.monotonic()
    until = started + float(seconds)

    places = Places(counts=found.counts)

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
