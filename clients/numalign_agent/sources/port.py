"""What a source of pods is to the rest of the agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from numalign_agent.pod import AgentPod

Deliver = Callable[[Sequence[AgentPod]], Awaitable[None]]


class PodSource(Protocol):
    """Delivers the complete set of its pods again and again, an empty set included (CFG)."""

    @property
    def name(self) -> str:
        """`file`, `http`, `api` or `kubelet`: what pods are annotated with."""

    def problems(self) -> Mapping[str, str]:
        """What cannot be used at present, by path or address, and why; empty when all is well."""

    async def run(self, deliver: Deliver) -> None:
        """Deliver sets until cancelled. Trouble is logged and tried again; it raises nothing."""
