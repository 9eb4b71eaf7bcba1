"""Players that other packages bring for the recordings of what they decide.

Separate, because the services know none of these packages: a player is found by the entry point
`numalign.replay` that is called like the kind of its recordings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from numalign.replay.recordings import Json, Kind, RecordingError

GROUP = "numalign.replay"


@dataclass(frozen=True, slots=True)
class Player:
    """How records of one kind are played.

    `answer` decides on a record's input. `expected` is what is recorded, as far as it counts.
    """

    answer: Callable[[Json], object]
    expected: Callable[[Json], object]


@cache
def player_of(kind: Kind) -> Player:
    """The player for a kind; RecordingError where no installed package brings one."""
    found = tuple(entry_points(group=GROUP, name=kind.value))
    if not found:
        raise RecordingError(f"no installed package plays recordings of {kind.value}")
    player = found[0].load()
    if not isinstance(player, Player):
        raise RecordingError(f"the entry point {found[0].value} is no player")
    return player
