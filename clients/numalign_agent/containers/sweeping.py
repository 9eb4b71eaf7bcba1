"""Removing dead containers, beside the loop: nobody waits for it (LOOP-4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from numalign.telemetry.logs import get_logger
from numalign_agent.containers.life import ContainerLife
from numalign_agent.runners.port import PodRunner, RunnerFailed
from numalign_agent.workers.port import OperationFailed

KEPT_ATTEMPTS = 2

_log = get_logger("containers")


class DeadContainers:
    """Pods whose dead containers are to go. `content_goes`: nothing of a pod has to be kept."""

    def __init__(
        self, runner: PodRunner, life: ContainerLife, content_goes: Callable[[str], bool]
    ) -> None:
        self._runner = runner
        self._life = life
        self._content_goes = content_goes
        self._wanted: dict[str, None] = {}
        self._wake = asyncio.Event()

    def remove(self, pod_uid: str) -> None:
        """Remove the old dead containers of a pod soon; all, if nothing is to be kept."""
        self._wanted[pod_uid] = None
        self._wake.set()

    async def run(self) -> None:
        """Remove until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            wanted, self._wanted = self._wanted, {}
            for uid in wanted:
                await self._sweep(uid)

    async def _sweep(self, uid: str) -> None:
        keep = 0 if self._content_goes(uid) else KEPT_ATTEMPTS
        try:
            pod = await self._runner.get_pod(uid)
            if pod is not None:
                await self._life.remove_all(pod.containers, keep=keep)
        except (OperationFailed, RunnerFailed) as error:
            # The next clean-up asks again.
            _log.warning("dead containers are left", pod_uid=uid, error=str(error))
