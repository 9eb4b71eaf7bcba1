"""Whether the sync loop still goes round (LOOP-9, LOOP-10). Pure."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_LIMIT = 300.0
TOO_LONG = "sync Loop took longer than expected"


@dataclass(frozen=True, slots=True)
class Monitor:
    """When the loop was last seen; times are seconds of one clock. None: never, and well."""

    sync_every: float
    seen_at: float | None = None

    def seen(self, now: float) -> Monitor:
        """The loop goes round."""
        return Monitor(self.sync_every, now)

    def problem(self, now: float) -> str | None:
        """Why the loop is not healthy; None if it is."""
        if self.seen_at is None:
            return None
        limit = max(2 * self.sync_every, LEAST_LIMIT)
        return TOO_LONG if now > self.seen_at + limit else None
