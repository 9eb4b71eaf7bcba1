"""Pods from a kubelet's `/pods`, asked for again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from numalign.telemetry.logs import get_logger
from numalign_agent.sources.kubelet import NAME
from numalign_agent.sources.kubelet.pods_list import TIMEOUT, CannotRead, PodsList
from numalign_agent.sources.port import Deliver
from numalign_agent.trouble import Troubles

_log = get_logger("agent.sources.kubelet")


class KubeletPodsUrl:
    """Asks `url`, such as `https://localhost:10250/pods`, every `every` seconds.

    `token_file` and `ca_file` are as for PodsList.
    """

    name = NAME

    def __init__(
        self,
        url: str,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        every: float = 5.0,
    ) -> None:
        self._list = PodsList(url, token_file, ca_file)
        self._every = every
        self._troubles = Troubles(_log)

    def problems(self) -> Mapping[str, str]:
        """Why the kubelet does not tell its pods at present."""
        return self._troubles.current()

    async def run(self, deliver: Deliver) -> None:
        """Ask until cancelled; while the kubelet does not answer the last known pods stay."""
        from aiohttp import ClientSession, ClientTimeout  # noqa: PLC0415 - only with this source

        async with ClientSession(timeout=ClientTimeout(total=TIMEOUT)) as session:
            while True:
                try:
                    pods = await self._list.read(session)
                except CannotRead as error:
                    self._troubles.say(self._list.url, str(error))
                else:
                    self._troubles.mended(self._list.url)
                    await deliver(pods)
                await asyncio.sleep(self._every)
