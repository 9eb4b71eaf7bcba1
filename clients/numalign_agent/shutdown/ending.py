"""Ends the pods of a node that is about to shut down, group by group (SHUT-4).

Separate from the watch, which hears of the shutdown and delays it meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from numalign.admission.handlers.node_shutdown import GraceGroup
from numalign.telemetry.logs import get_logger
from numalign_agent.pod import AgentPod
from numalign_agent.shutdown.plan import Ending, endings, kill_of
from numalign_agent.workers.workers import KillTimedOut, Workers

_log = get_logger("node-shutdown")


class PodEnding:
    """Ends pods when it is told to. `pods` are those that have not ended."""

    def __init__(
        self,
        workers: Workers,
        pods: Callable[[], Iterable[AgentPod]],
        groups: Sequence[GraceGroup],
    ) -> None:
        self._workers = workers
        self._pods = pods
        self._groups = groups
        self._ending: asyncio.Task[None] | None = None
        self._kills: set[asyncio.Task[None]] = set()

    def announced(self, shutting_down: bool) -> None:
        """The node is about to shut down, or it is not after all: then no more pods are ended."""
        if shutting_down and self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())
        elif not shutting_down and self._ending is not None:
            self._ending.cancel()
            self._ending = None

    async def pods_left(self) -> bool:
        """Whether pods have not ended yet."""
        return any(True for _ in self._pods())

    async def close(self) -> None:
        """End no more pods; those that are being ended are by their workers."""
        under_way = [*self._kills, *(() if self._ending is None else (self._ending,))]
        self._ending = None
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _end(self) -> None:
        for ending in endings(self._pods(), self._groups):
            names = [pod.full_name for pod in ending.pods]
            _log.info("the node shuts down, pods end", pods=names, seconds=ending.seconds)
            kills = {asyncio.create_task(self._kill(pod, ending)) for pod in ending.pods}
            self._kills |= kills
            _, late = await asyncio.wait(kills, timeout=ending.seconds)
            if late:
                _log.warning("pods have not ended in time; the next ones end", left=len(late))

    async def _kill(self, pod: AgentPod, ending: Ending) -> None:
        try:
            await self._workers.kill(pod, kill_of(pod, ending.seconds))
        except KillTimedOut as error:
            _log.warning("a pod has not ended in time", pod=pod.full_name, error=str(error))
