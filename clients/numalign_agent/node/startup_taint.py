"""Takes the start-up taint off this node's Node once all is ready, and puts it back if told to."""

from __future__ import annotations

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.api import paths
from numalign_agent.api.errors import ApiError
from numalign_agent.api.server import ApiServer
from numalign_agent.backoff import Backoff
from numalign_agent.node.failures import is_overtaken, node_trouble
from numalign_agent.node.metrics import API_FAILURES, TAINT_CHANGES, TAINTED
from numalign_agent.node.taint import KEY, addition, is_tainted, removal
from numalign_agent.trouble import Troubles

LOOK_EVERY = 60.0
"""Seconds after which a Node without the taint is read again: it may have joined anew."""

_TRIES = 3
"""How often in a row a change is tried that others overtake."""

_log = get_logger("node")


class StartUpTaint:
    """Looks after one taint of one Node; nothing else of it is changed."""

    def __init__(
        self,
        server: ApiServer,
        node_name: str,
        restore_after: float | None,
        metrics: Metrics,
        backoff: Backoff | None = None,
    ) -> None:
        self._server = server
        self._node_name = node_name
        self._restore_after = restore_after
        self._tainted = metrics.gauge(TAINTED)
        self._changes = metrics.counter(TAINT_CHANGES)
        self._failures = metrics.counter(API_FAILURES)
        self._backoff = backoff or Backoff(1.0, 30.0)
        self._troubles = Troubles(_log)
        self._ready: bool | None = None
        self._not_ready_since = 0.0
        self._next_at = 0.0
        self._settled = False

    def problem(self) -> str | None:
        """Why the taint is not as it should be; None where it is. For any thread."""
        troubles = self._troubles.current()
        if troubles:
            return "; ".join(troubles.values())
        return None if self._settled else "the Node has not been looked at yet"

    async def look(self, *, ready: bool, now: float) -> None:
        """Do what is due at `now`, in seconds of a clock that only goes forward."""
        if ready is not self._ready:
            self._ready = ready
            self._not_ready_since = now
            self._next_at = now
        if not ready and (
            self._restore_after is None or now - self._not_ready_since < self._restore_after
        ):
            return
        if now < self._next_at:
            return
        try:
            await self._make(wanted=not ready)
        except ApiError as error:
            self._failures.labels("taint").inc()
            self._troubles.say(KEY, node_trouble(error, self._node_name))
            self._next_at = now + self._backoff.failed()
        else:
            self._troubles.mended(KEY)
            self._backoff.succeeded()
            self._settled = True
            self._next_at = now + LOOK_EVERY

    async def _make(self, *, wanted: bool) -> None:
        """Have the Node with or without the taint, whoever else changes its taints meanwhile."""
        place = paths.node(self._node_name)
        for tries_left in reversed(range(_TRIES)):
            node = await self._server.get(place)
            self._tainted.set(is_tainted(node))
            patch = addition(node) if wanted else removal(node)
            if not patch:
                return
            try:
                await self._server.json_patch(place, patch)
            except ApiError as error:
                if is_overtaken(error) and tries_left:
                    continue
                raise
            self._tainted.set(wanted)
            self._changes.labels("restored" if wanted else "removed").inc()
            _log.info(
                "put the start-up taint back: not ready for long"
                if wanted
                else "took the start-up taint off: all is ready",
                node=self._node_name,
                taint=KEY,
            )
            return
