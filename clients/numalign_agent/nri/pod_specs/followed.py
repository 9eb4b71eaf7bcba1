"""Pod specs from a source that is followed, such as the kubelet's pods interface."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from numalign_agent.nri.pod_specs.port import PodDocument, SourceFailed, Wanted
from numalign_agent.pod import AgentPod
from numalign_agent.sources.port import PodSource


class FollowedSpecs:
    """Keeps the last set that a source delivered. A pod that is not in it yet is waited for.

    The source runs from the first question on; whoever asks says by a time limit how long to wait.
    """

    def __init__(self, source: PodSource) -> None:
        self._source = source
        self._running: asyncio.Task[None] | None = None
        self._pods: Sequence[AgentPod] = ()
        self._delivered = asyncio.Condition()

    @property
    def name(self) -> str:
        """What the source is called."""
        return self._source.name

    async def find(self, wanted: Wanted) -> PodDocument | None:
        """The pod as the source has it. Raises SourceFailed where it has troubles."""
        if self._running is None:
            self._running = asyncio.create_task(self._source.run(self._deliver))
        async with self._delivered:
            while (found := self._among(wanted)) is None:
                problems = self._source.problems()
                if problems:
                    raise SourceFailed("; ".join(f"{p}: {why}" for p, why in problems.items()))
                await self._delivered.wait()
            return found

    async def close(self) -> None:
        """End the source."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _deliver(self, pods: Sequence[AgentPod]) -> None:
        async with self._delivered:
            self._pods = pods
            self._delivered.notify_all()

    def _among(self, wanted: Wanted) -> PodDocument | None:
        shown = (pod.document for pod in self._pods if wanted.is_shown_by(pod.document))
        return next(shown, None)
