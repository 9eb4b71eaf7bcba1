"""Pod specs from the kubelet's `/pods`: what it runs, static pods among it.

The nearest source: it knows a pod before its sandbox is made, needs no API server, and static
pods come with the uid that their sandboxes have.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from numalign_agent.nri.pod_specs.port import PodDocument, SourceFailed, Wanted
from numalign_agent.pod import AgentPod
from numalign_agent.sources.kubelet.pods_list import TIMEOUT, CannotRead, PodsList

if TYPE_CHECKING:
    from aiohttp import ClientSession

_KEPT = 1.0
"""Seconds for which a list is used again."""


class KubeletSpecs:
    """One kubelet. Its whole list is read at a time."""

    name = "kubelet"

    def __init__(self, pods: PodsList) -> None:
        self._list = pods
        self._session: ClientSession | None = None
        self._reading = asyncio.Lock()
        self._pods: tuple[AgentPod, ...] = ()
        self._read_at = 0.0

    async def find(self, wanted: Wanted) -> PodDocument | None:
        """The pod as the kubelet has it. Raises SourceFailed."""
        found = self._among(wanted)
        if found is not None:
            return found
        async with self._reading:
            # Somebody else may have read the list while this waited for its turn.
            if (found := self._among(wanted)) is not None:
                return found
            try:
                self._pods = await self._list.read(self._connected())
            except CannotRead as error:
                raise SourceFailed(f"{self._list.url}: {error}") from error
            self._read_at = asyncio.get_running_loop().time()
        return self._among(wanted)

    async def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            await self._session.close()

    def _among(self, wanted: Wanted) -> PodDocument | None:
        if asyncio.get_running_loop().time() - self._read_at > _KEPT:
            return None
        shown = (pod.document for pod in self._pods if wanted.is_shown_by(pod.document))
        return next(shown, None)

    def _connected(self) -> ClientSession:
        from aiohttp import ClientSession, ClientTimeout  # noqa: PLC0415 - costs memory

        if self._session is None:
            self._session = ClientSession(timeout=ClientTimeout(total=TIMEOUT))
        return self._session
