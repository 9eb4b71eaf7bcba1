"""Whether the runtime is still looked at (PLEG-1). Pure."""

from __future__ import annotations

THRESHOLD = 180.0
NOT_YET = "pleg has yet to be successful"


def problem(listed_at: float | None, now: float) -> str | None:
    """Why looking is not healthy; `listed_at` is when the last listing that worked began."""
    if listed_at is None:
        return NOT_YET
    ago = now - listed_at
    if ago > THRESHOLD:
        return f"pleg was last seen active {_duration(ago)} ago; threshold is 3m0s"
    return None


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s"
