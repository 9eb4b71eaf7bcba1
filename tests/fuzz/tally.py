"""What came out of the executions of one target: counted, and kept where it should not have."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz.target import Target

MOST_KEPT = 4096
"""Of an input, so many bytes are kept."""


@dataclass
class Report:
    """Figures of one target.

    `raised` counts documented exceptions by name; `unexpected` has a line for each other one,
    by type and place, with the first input that led to it, in hex. `seconds` is the time of
    the executions alone. `places` is how many places in the code were reached, None where the
    engine does not look.
    """

    target: str
    engine: str
    executions: int = 0
    seconds: float = 0.0
    places: int | None = None
    raised: dict[str, int] = field(default_factory=dict)
    unexpected: dict[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the report for whoever started this process."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Report:
        """The report in a file."""
        return cls(**json.loads(path.read_text()))


class Tally:
    """Executes a target and counts."""

    def __init__(self, target: Target, engine: str) -> None:
        self._target = target
        self._raised: Counter[str] = Counter()
        self.report = Report(target.name, engine)

    def execute(self, data: bytes) -> None:
        """Run the target once. Nothing but an exit comes out of it."""
        self.report.executions += 1
        try:
            self._target.run(data)
        except self._target.documented as error:
            self._raised[type(error).__name__] += 1
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
            self.report.unexpected.setdefault(place, data[:MOST_KEPT].hex())

    def finish(self, seconds: float, places: int | None = None) -> Report:
        """The figures, after `seconds` of executions that reached so many places."""
        self.report.places = places
        self.report.seconds = seconds
        self.report.raised = dict(self._raised)
        return self.report
