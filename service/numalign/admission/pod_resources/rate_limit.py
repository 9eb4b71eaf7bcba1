"""The kubelet's limit on calls of its pod resources socket (PR-1)."""

from __future__ import annotations

from collections.abc import Callable

CALLS_PER_SECOND = 100.0
BURST = 10

REJECTED = "rejected by rate limit"
"""The kubelet's text for a call above the limit; its code is RESOURCE_EXHAUSTED."""


class TokenBucket:
    """Lets `burst` calls through at once and `rate` a second in the long run.

    `clock` gives seconds that never go back.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        rate: float = CALLS_PER_SECOND,
        burst: int = BURST,
    ) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at = clock()

    def take(self) -> bool:
        """Whether one more call may go through now; if so it is counted."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
