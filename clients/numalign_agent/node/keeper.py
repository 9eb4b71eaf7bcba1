"""Looks again and again whether all is ready, and has the taint be so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.node.metrics import PART_READY, READY
from numalign_agent.node.readiness import Readiness
from numalign_agent.node.startup_taint import StartUpTaint

_log = get_logger("node")


class NodeKeeper:
    """Keeps one node. `taint` None leaves the Node alone."""

    def __init__(
        self,
        readiness: Readiness,
        taint: StartUpTaint | None,
        check_every: float,
        metrics: Metrics,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._readiness = readiness
        self._taint = taint
        self._check_every = check_every
        self._ready = metrics.gauge(READY)
        self._part_ready = metrics.gauge(PART_READY)
        self._sleep = sleep
        self._missing: Mapping[str, str] | None = None

    def not_ready(self) -> str | None:
        """What is not ready, and why; None where all is. For any thread."""
        if self._missing is None:
            return "nobody has been asked yet"
        return "; ".join(f"{part}: {why}" for part, why in self._missing.items()) or None

    async def run(self) -> None:
        """Look until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            self._note(await self._readiness.missing())
            if self._taint is not None:
                await self._taint.look(ready=not self._missing, now=clock())
            await self._sleep(self._check_every)

    def _note(self, missing: Mapping[str, str]) -> None:
        self._ready.set(not missing)
        for part in self._readiness.parts:
            self._part_ready.labels(part).set(part not in missing)
        if missing != self._missing:
            if missing:
                _log.warning("not ready", **missing)
            else:
                _log.info("all is ready")
        self._missing = missing
