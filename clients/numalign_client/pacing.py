"""When a call is made again, and for how long: back-off within one deadline.

Pure but for its clock, and shared by both clients. Only UNAVAILABLE is worth another try: then
nothing was decided and nothing kept. Every other error would come again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from numalign_client.errors import ServiceUnavailable


@dataclass(frozen=True, slots=True)
class Retry:
    """Pauses between the tries of one call, in seconds: the first one, then longer ones.

    Each is `factor` times the last, `longest` at most, and shorter by up to `jitter` of itself,
    so that many callers do not come at once. `first=math.inf` never tries again.
    """

    first: float = 0.1
    factor: float = 2.0
    longest: float = 5.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense, naming the field."""
        if not (self.first > 0 and self.longest > 0):
            raise ValueError(f"first and longest must be more than 0: {self}")
        if self.factor < 1 or not 0 <= self.jitter < 1:
            raise ValueError(f"factor must be at least 1, and jitter from 0 to below 1: {self}")


class Pacing:
    """One call with all its tries, which may take `seconds` altogether (math.inf: no limit)."""

    def __init__(
        self, retry: Retry, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not seconds > 0:
            raise ValueError(f"timeout must be more than 0 seconds, not {seconds}")
        self._retry = retry
        self._clock = clock
        self._end = clock() + seconds
        self._pause = retry.first
        self.tries = 1

    def remaining(self) -> float | None:
        """Seconds that are left for a try; None: no limit."""
        return None if math.isinf(self._end) else max(0.0, self._end - self._clock())

    def pause(self, error: ServiceUnavailable) -> float:
        """Seconds to wait before the next try. Raises the error where there is no time for one."""
        import random

        pause = min(self._pause, self._retry.longest)
        pause *= 1 - random.random() * self._retry.jitter  # noqa: S311 - no secret
        remaining = self.remaining()
        if math.isinf(self._retry.first) or (remaining is not None and pause >= remaining):
            raise error
        self._pause = min(self._pause * self._retry.factor, self._retry.longest)
        self.tries += 1
        return pause
