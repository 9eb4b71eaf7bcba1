"""What keeps the sync loop from doing anything: the runtime errors of LOOP-7. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

STALE_SECONDS = 30.0
NEVER_CHECKED = "container runtime status check may not have completed yet"
DOWN = "container runtime is down"


@dataclass(frozen=True, slots=True)
class RuntimeHealth:
    """The last answers of the runtime; `checked_at` is when it last answered at all."""

    checked_at: float | None = None
    not_ready: str | None = None

    def answered(self, now: float, not_ready: str | None) -> RuntimeHealth:
        """The runtime said how it is."""
        return RuntimeHealth(now, not_ready)

    def silent(self) -> RuntimeHealth:
        """The runtime did not answer: what it said before counts for a while."""
        return replace(self, not_ready=None)

    def errors(self, now: float, pleg_problem: str | None) -> tuple[str, ...]:
        """Everything that is wrong now."""
        errors = []
        if self.checked_at is None:
            errors.append(NEVER_CHECKED)
        elif now > self.checked_at + STALE_SECONDS:
            errors.append(DOWN)
        if pleg_problem is not None:
            errors.append(f"PLEG is not healthy: {pleg_problem}")
        if self.not_ready is not None:
            errors.append(self.not_ready)
        return tuple(errors)
