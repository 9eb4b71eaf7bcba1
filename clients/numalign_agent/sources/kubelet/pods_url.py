"""Pods from a kubelet's `/pods`, over HTTPS with a bearer token."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from numalign.telemetry.logs import get_logger
from numalign_agent.pod import AgentPod
from numalign_agent.sources.kubelet import NAME
from numalign_agent.sources.port import Deliver
from numalign_agent.trouble import Troubles

if TYPE_CHECKING:
    from aiohttp import ClientSession

TIMEOUT = 10.0
"""Seconds that one answer may take."""

MAX_BYTES = 64 << 20
"""The longest list that is read."""

_OK = 200

_log = get_logger("agent.sources.kubelet")


class CannotRead(Exception):
    """The list could not be read; the text says why."""


class KubeletPodsUrl:
    """Asks `url`, such as `https://localhost:10250/pods`, every `every` seconds.

    The token is read anew each time, since it is replaced while it is used. `ca_file` None: the
    system's own authorities.
    """

    name = NAME

    def __init__(
        self,
        url: str,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        every: float = 5.0,
    ) -> None:
        self._url = url
        self._token_file = token_file
        self._ca_file = ca_file
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
                    pods = await self._ask(session)
                except CannotRead as error:
                    self._troubles.say(self._url, str(error))
                else:
                    self._troubles.mended(self._url)
                    await deliver(pods)
                await asyncio.sleep(self._every)

    async def _ask(self, session: ClientSession) -> tuple[AgentPod, ...]:
        from aiohttp import ClientError  # noqa: PLC0415 - as above

        try:
            headers, authorities = await asyncio.to_thread(self._credentials)
            async with session.get(self._url, headers=headers, ssl=authorities) as response:
                if response.status != _OK:
                    raise CannotRead(f"{response.status} {response.reason}")
                body = bytearray()
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise CannotRead(f"the list is longer than {MAX_BYTES} bytes")
        except TimeoutError as error:
            raise CannotRead(f"no answer within {TIMEOUT:g} s") from error
        except (ClientError, OSError, ValueError) as error:
            raise CannotRead(str(error) or type(error).__name__) from error
        return _pods(bytes(body))

    def _credentials(self) -> tuple[dict[str, str], ssl.SSLContext]:
        headers = {}
        if self._token_file is not None:
            token = self._token_file.read_text(encoding="utf-8").strip()
            headers["Authorization"] = f"Bearer {token}"
        return headers, ssl.create_default_context(cafile=self._ca_file)


def _pods(body: bytes) -> tuple[AgentPod, ...]:
    try:
        items = json.loads(body)["items"] or []
        pods = tuple(AgentPod(dict(item)) for item in items)
    except (ValueError, KeyError, TypeError) as error:
        raise CannotRead("the answer is no list of pods") from error
    if not all(pod.uid for pod in pods):
        raise CannotRead("the list has a pod without a UID")
    return pods
