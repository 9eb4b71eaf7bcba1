"""How long a container that keeps ending is left alone before it is started again.

Pure, and separate from the plan, because the pauses outlive the plan that they come from.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class CrashPause:
    """A pause of `seconds`, decided on at `since` (seconds since the epoch)."""

    seconds: float
    since: float


def remaining(pause: CrashPause | None, finished_at: float, now: float) -> float:
    """Seconds until a container that ended at `finished_at` may start again; 0: now."""
    if pause is None or _is_over(pause, finished_at):
        return 0.0
    return max(0.0, finished_at + pause.seconds - now)


def lengthened(pause: CrashPause | None, finished_at: float, now: float) -> CrashPause:
    """The pause for the next time, when the container is started again now.

    It doubles up to five minutes, and begins anew after a container that ran for ten.
    """
    if pause is None or _is_over(pause, finished_at):
        return CrashPause(FIRST_SECONDS, now)
    return CrashPause(min(2 * pause.seconds, LONGEST_SECONDS), now)


def _is_over(pause: CrashPause, finished_at: float) -> bool:
    return finished_at - pause.since > 2 * LONGEST_SECONDS


def pause_message(seconds: float, container: str, pod_name: str, namespace: str, uid: str) -> str:
    """What the status of a container that waits says."""
    return (
        f"back-off {_duration(seconds)} restarting failed container={container} "
        f"pod={pod_name}_{namespace}({uid})"
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
