"""One answer of a kubelet's `/pods`, over HTTPS with a bearer token.

Separate from how often it is asked for: a source follows it, and the NRI plugin looks a pod up.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from numalign_agent.pod import AgentPod

if TYPE_CHECKING:
    from aiohttp import ClientSession

TIMEOUT = 10.0
"""Seconds that one answer may take."""

MAX_BYTES = 64 << 20
"""The longest list that is read."""

_OK = 200


class CannotRead(Exception):
    """The list could not be read; the text says why."""


class PodsList:
    """The list at `url`, such as `https://localhost:10250/pods`.

    The token is read anew each time, since it is replaced while it is used. `ca_file` None: the
    system's own authorities.
    """

    def __init__(
        self, url: str, token_file: Path | None = None, ca_file: Path | None = None
    ) -> None:
        self.url = url
        self._token_file = token_file
        self._ca_file = ca_file

    async def read(self, session: ClientSession) -> tuple[AgentPod, ...]:
        """All pods. Raises CannotRead."""
        from aiohttp import ClientError  # noqa: PLC0415 - only where it is used

        try:
            headers, authorities = await asyncio.to_thread(self._credentials)
            async with session.get(self.url, headers=headers, ssl=authorities) as response:
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
