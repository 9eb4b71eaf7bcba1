"""Evicting refused pods through the API, so that their controllers make others elsewhere.

Separate from the judging, which must not wait for an API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from numalign.telemetry.logs import get_logger
from numalign_agent.api.errors import ApiError
from numalign_agent.api.failures import explained
from numalign_agent.nri.api_calls import PodApi
from numalign_agent.pod import AgentPod

_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
_TRIES = 10

_log = get_logger("nri")


class Evictions:
    """Pods to evict, each once however often it is asked for while it waits."""

    def __init__(
        self,
        api: PodApi | None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._sleep = sleep
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def ask(self, pod: AgentPod, why: str) -> None:
        """Have a pod evicted. A budget that does not allow it now is asked again."""
        if self._api is None:
            _log.error(
                "a pod cannot be evicted: no API server is configured", pod_uid=pod.uid, why=why
            )
        elif pod.uid not in self._tasks:
            task = asyncio.create_task(self._evict(self._api, pod))
            self._tasks[pod.uid] = task
            task.add_done_callback(lambda _: self._tasks.pop(pod.uid, None))

    async def close(self) -> None:
        """Give up what is still asked for."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _evict(self, api: PodApi, pod: AgentPod) -> None:
        called, wait = f"{pod.namespace}/{pod.name}", _FIRST_WAIT
        for _ in range(_TRIES):
            try:
                there = await api.evict(pod.namespace, pod.name, pod.uid)
            except ApiError as error:
                why = explained(error)
                _log.warning("an eviction failed", pod=called, pod_uid=pod.uid, error=why)
                await self._sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            _log.info("pod evicted" if there else "pod is gone", pod=called, pod_uid=pod.uid)
            return
        _log.error("a pod could not be evicted", pod=called, pod_uid=pod.uid)
