"""What one look at a source came to."""

from __future__ import annotations

from dataclasses import dataclass

from numalign_agent.pod import AgentPod


@dataclass(frozen=True, slots=True)
class Reading:
    """`pods`: the whole set to deliver; None: nothing is delivered. `error`: what went wrong."""

    pods: tuple[AgentPod, ...] | None = None
    error: str | None = None
