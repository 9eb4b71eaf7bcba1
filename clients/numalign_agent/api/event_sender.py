"""Sends events to an API server; one that repeats is counted up, not sent again."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numalign.telemetry.logs import get_logger
from numalign_agent.api import paths
from numalign_agent.api.errors import ApiError, Refused, Unreachable
from numalign_agent.api.event_objects import event_object
from numalign_agent.api.failures import explained
from numalign_agent.api.server import ApiServer
from numalign_agent.backoff import Backoff
from numalign_agent.pod import AgentPod
from numalign_agent.status.port import EventType
from numalign_agent.status.times import rfc3339

WAITING = 1000
"""Events that wait for the server; when there are more, the oldest are lost, and counted."""

_KNOWN = 1000
_Key = tuple[str, str, str, str]

_log = get_logger("agent.events")


@dataclass(slots=True)
class _Sent:
    namespace: str
    name: str
    count: int = 1


class EventSender:
    """A queue of events in front of one server."""

    def __init__(
        self,
        server: ApiServer,
        node_name: str,
        clock: Callable[[], float],
        backoff: Backoff | None = None,
    ) -> None:
        self._server = server
        self._node_name = node_name
        self._clock = clock
        self._backoff = backoff or Backoff(1.0, 60.0)
        self._waiting: deque[tuple[_Key, dict[str, Any]]] = deque()
        self._sent: OrderedDict[_Key, _Sent] = OrderedDict()
        self._wake = asyncio.Event()
        self.lost = 0

    def add(self, pod: AgentPod, kind: EventType, reason: str, message: str) -> None:
        """One more event."""
        if len(self._waiting) >= WAITING:
            self._waiting.popleft()
            self.lost += 1
            _log.warning("too many events wait for the API server", lost=self.lost)
        made = event_object(
            pod, kind, reason, message, node_name=self._node_name, now=self._clock()
        )
        self._waiting.append(((pod.uid, kind.value, reason, message), made))
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled, in order; what the server does not take is logged and dropped."""
        while True:
            while self._waiting:
                key, event = self._waiting[0]
                try:
                    await self._send(key, event)
                except Unreachable as error:
                    wait = self._backoff.failed()
                    _log.warning("cannot send events", why=str(error), retry_in=wait)
                    await asyncio.sleep(wait)
                    continue
                except ApiError as error:
                    _log.warning(
                        "an event is not taken", reason=event["reason"], why=explained(error)
                    )
                self._backoff.succeeded()
                if self._waiting and self._waiting[0][1] is event:
                    self._waiting.popleft()
            self._wake.clear()
            await self._wake.wait()

    async def _send(self, key: _Key, event: dict[str, Any]) -> None:
        sent = self._sent.get(key)
        if sent is not None and await self._count_up(sent):
            self._sent.move_to_end(key)
            return
        namespace = event["metadata"]["namespace"]
        made = await self._server.create(paths.events_in(namespace), event)
        self._sent[key] = _Sent(namespace, made["metadata"]["name"])
        if len(self._sent) > _KNOWN:
            self._sent.popitem(last=False)

    async def _count_up(self, sent: _Sent) -> bool:
        """False: the server has forgotten the event."""
        patch = {"count": sent.count + 1, "lastTimestamp": rfc3339(self._clock())}
        try:
            await self._server.patch(paths.event(sent.namespace, sent.name), patch)
        except Refused as error:
            if error.is_not_found:
                return False
            raise
        sent.count += 1
        return True
