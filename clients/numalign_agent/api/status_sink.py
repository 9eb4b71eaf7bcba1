"""Sends statuses and events of pods to an API server (STAT-2 to STAT-4).

What is to be told is decided in `status_patch`; here it is decided when.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from numalign.telemetry.logs import get_logger
from numalign_agent.api import paths
from numalign_agent.api.errors import ApiError, Refused
from numalign_agent.api.event_sender import EventSender
from numalign_agent.api.failures import explained
from numalign_agent.api.server import ApiServer
from numalign_agent.api.status_patch import status_patch
from numalign_agent.pod import AgentPod
from numalign_agent.status.port import EventType, PodQuestions
from numalign_agent.status.times import rfc3339
from numalign_agent.trouble import Troubles

RECHECK_SECONDS = 10.0
"""How often all pods are looked at again (STAT-1)."""

_log = get_logger("agent.status")


@dataclass(slots=True)
class _Wanted:
    pod: AgentPod
    status: Mapping[str, Any]
    is_due: bool = True


class ApiStatusSink:
    """Patches the latest status of each pod, and finishes deletions.

    Not for an agent that follows a kubelet: the kubelet reports its pods itself.
    """

    def __init__(
        self,
        server: ApiServer,
        node_name: str,
        questions: PodQuestions,
        clock: Callable[[], float] = time.time,
        recheck_seconds: float = RECHECK_SECONDS,
    ) -> None:
        self._server = server
        self._questions = questions
        self._clock = clock
        self._recheck_seconds = recheck_seconds
        self._wanted: dict[str, _Wanted] = {}
        self._wake = asyncio.Event()
        self._troubles = Troubles(_log)
        self._events = EventSender(server, node_name, clock)

    def set_status(self, pod: AgentPod, status: Mapping[str, Any]) -> None:
        """Another status of a pod; an older one that was not sent yet is not sent any more."""
        self._wanted[pod.uid] = _Wanted(pod, status)
        self._wake.set()

    def event(self, pod: AgentPod, kind: EventType, reason: str, message: str) -> None:
        """Something happened to a pod."""
        self._events.add(pod, kind, reason, message)

    def forget(self, pod_uid: str) -> None:
        """Nothing more is sent of this pod."""
        self._wanted.pop(pod_uid, None)
        self._troubles.mended(pod_uid)

    def recheck(self, pod_uid: str) -> None:
        """What was held back may go now."""
        wanted = self._wanted.get(pod_uid)
        if wanted is not None:
            wanted.is_due = True
            self._wake.set()

    def problems(self) -> Mapping[str, str]:
        """Pods (by UID) whose status cannot be told at present, and why."""
        return self._troubles.current()

    async def run(self) -> None:
        """Send what is due, and look at all pods every so often; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._events.run())
            tasks.create_task(self._send_for_ever())

    async def _send_for_ever(self) -> None:
        while True:
            self._wake.clear()
            for uid in [uid for uid, wanted in self._wanted.items() if wanted.is_due]:
                await self._send(uid)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._recheck_seconds):
                    await self._wake.wait()
                continue
            for uid, wanted in self._wanted.items():
                wanted.is_due = wanted.is_due or self._is_worth_a_look(uid, wanted)

    async def _send(self, uid: str) -> None:
        wanted = self._wanted.get(uid)
        if wanted is None:  # forgotten while another one was sent
            return
        wanted.is_due = False
        shown = self._shown(wanted.pod)
        if shown is None:
            return
        try:
            await self._tell(wanted, shown)
        except ApiError as error:
            if isinstance(error, Refused) and error.is_not_found:
                return
            # Tried again when all pods are looked at: a server that is away must not be hurried.
            self._troubles.say(uid, explained(error))
        else:
            self._troubles.mended(uid)

    async def _tell(self, wanted: _Wanted, shown: AgentPod) -> None:
        place = paths.pod(shown.namespace, shown.name)
        found = AgentPod(await self._server.get(place))
        if found.uid != shown.uid:
            return
        patch = self._patch(wanted, found)
        if patch:
            body = {"metadata": {"uid": found.uid}, "status": patch}
            await self._server.patch(paths.pod_status(shown.namespace, shown.name), body)
        if self._can_be_deleted(wanted, found):
            await self._server.delete(place, uid=found.uid, grace_seconds=0)
            _log.info("deleted", pod=f"{found.namespace}/{found.name}", pod_uid=found.uid)

    def _shown(self, pod: AgentPod) -> AgentPod | None:
        """The pod that the API shows for it; None for a static pod without a mirror."""
        return self._questions.mirror_of(pod) if pod.is_static else pod

    def _patch(self, wanted: _Wanted, shown: AgentPod) -> dict[str, Any]:
        return status_patch(
            shown.status,
            wanted.status,
            may_run=self._questions.may_run(wanted.pod.uid),
            now=rfc3339(self._clock()),
        )

    def _can_be_deleted(self, wanted: _Wanted, shown: AgentPod) -> bool:
        uid = wanted.pod.uid
        known = self._questions.pod(uid)
        return (
            shown.deletion_timestamp is not None
            and not shown.is_mirror
            and known is not None
            and known.is_terminal
            and self._questions.is_finished(uid)
        )

    def _is_worth_a_look(self, uid: str, wanted: _Wanted) -> bool:
        """Whether, as far as the sources say, the API shows something else than it should."""
        if uid in self._troubles.current():
            return True
        known = self._questions.pod(uid)
        if known is None:
            return False
        shown = self._shown(known)
        return shown is not None and (
            bool(self._patch(wanted, shown)) or self._can_be_deleted(wanted, shown)
        )
