"""How much a merge has worked, and how much it may.

One small object travels through all searches of a merge. Separate from them because the limit
holds for all of them together.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_STEPS = 30_000
"""Steps of the searches of one merge, together; some seconds at most."""

_EXACT_STEP = 8
"""How long a step of an exact search takes, in steps of the other kinds."""

MOST_STATES = 20_000
"""States of section "Not preferred" that are kept apart; only long explicit lists make many."""


class OutOfWork(Exception):
    """The limit is reached before a question was settled."""


@dataclass(slots=True)
class Work:
    """The counters of one merge.

    `questions` were put to the packing oracle, `rounds` priced its rows, `steps` were taken by
    exact searches, `vectors` by the search for close nodes, and `states` were kept apart. All
    but questions and states are steps; only searches are stopped, so that what a bound settles
    stays settled.
    `heuristics` False: no solution is guessed, so that the exact searches decide alone.
    """

    limit: int = MOST_STEPS
    heuristics: bool = True
    questions: int = 0
    rounds: int = 0
    steps: int = 0
    vectors: int = 0
    states: int = 0

    def step(self) -> None:
        """Count one step of an exact search. Raises OutOfWork beyond the limit."""
        self.steps += 1
        self._check()

    def vector(self) -> None:
        """Count one step of the search for close nodes. Raises OutOfWork beyond the limit."""
        self.vectors += 1
        self._check()

    def state(self) -> None:
        """Count one state. Raises OutOfWork where there are too many to go on."""
        self.states += 1
        if self.states > MOST_STATES:
            raise OutOfWork

    def _check(self) -> None:
        if _EXACT_STEP * self.steps + self.vectors + self.rounds > self.limit:
            raise OutOfWork
