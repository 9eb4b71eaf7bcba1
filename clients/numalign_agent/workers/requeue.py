"""When a worker looks at its pod again (WRK-14). Pure: the random part is passed in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NETWORK_NOT_READY = "network is not ready"
AFTER_NETWORK_NOT_READY = 1.0
AFTER_ERROR = 10.0
JITTER = 0.5


class Ending(StrEnum):
    """How an operation on a pod ended."""

    MOVED_ON = "moved on"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one operation; of a failure the text, and when trying again makes sense.

    `retry_after` is in seconds; None: the failure says nothing about it.
    """

    ending: Ending
    error: str = ""
    retry_after: float | None = None


def next_look(outcome: Outcome, sync_every: float, chance: float) -> float:
    """Seconds until the next look; `chance` is from 0 to 1."""
    jitter = 1.0 + JITTER * chance
    if outcome.ending is Ending.MOVED_ON:
        return 0.0
    if outcome.ending is Ending.DONE:
        return sync_every * jitter
    if NETWORK_NOT_READY in outcome.error:
        return AFTER_NETWORK_NOT_READY * jitter
    if outcome.retry_after is not None:
        return min(max(outcome.retry_after, 0.0), sync_every) * jitter
    return AFTER_ERROR * jitter
