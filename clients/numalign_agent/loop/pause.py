"""How long to wait before trying again what did not work: the pauses of LOOP-8. Pure."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Pause:
    """The seconds of the next pause: 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, ..."""

    seconds: float = FIRST_SECONDS

    def longer(self) -> Pause:
        """The one after it."""
        return Pause(min(2 * self.seconds, LONGEST_SECONDS))
