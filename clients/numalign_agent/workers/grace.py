"""How long containers have to end, and how long to wait for it (WRK-6, WRK-13). Pure."""

from __future__ import annotations

from numalign_agent.pod import AgentPod

LEAST_GRACE = 1
LEAST_WAIT = 10.0


def effective_grace(in_force: int | None, pod: AgentPod, override: int | None) -> int:
    """Seconds of grace from now on: the least of what was given, never more than before.

    A value of 0 counts as given, but does not outrank a larger one (WRK-6).
    """
    deletion = pod.metadata.get("deletionGracePeriodSeconds")
    given = [seconds for seconds in (in_force, override, deletion) if seconds is not None]
    if given:
        return max(LEAST_GRACE, min((s for s in given if s > 0), default=0))
    return max(LEAST_GRACE, spec_grace(pod) or 0)


def spec_grace(pod: AgentPod) -> int | None:
    """The pod's own grace period; None where it has none."""
    seconds = pod.spec.get("terminationGracePeriodSeconds")
    return None if seconds is None else int(seconds)


def kill_wait(pod: AgentPod, override: int | None) -> float:
    """Seconds to wait for a pod that was killed (WRK-13)."""
    grace = override if override is not None else spec_grace(pod) or 0
    return max(LEAST_WAIT, float(grace * 3 // 2))
