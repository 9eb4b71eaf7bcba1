"""Pod specs from the kubelet's `/pods`: what it runs, static pods among it.

The nearest source: it knows a pod before its sandbox is made, needs no API server, and static
pods come with the uid that their sandboxes have.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numalign_agent.nri.pod_specs.port import PodDocument, SourceFailed, Wanted

if TYPE_CHECKING:
    from aiohttp import ClientSession

_LARGEST = 64 << 20
_KEPT = 1.0


class KubeletSpecs:
    """One kubelet. Its whole list is read at a time, and used for one second.

    The token is read at each request, since it is renewed, and goes to this address alone.
    """

    name = "kubelet"

    def __init__(
        self, url: str, token_file: Path | None = None, ca_file: Path | None = None
    ) -> None:
        self._url = url
        self._token_file = token_file
        self._ca_file = ca_file
        self._session: ClientSession | None = None
        self._reading = asyncio.Lock()
        self._pods: tuple[PodDocument, ...] = ()
        self._read_at = -_KEPT

    async def find(self, wanted: Wanted) -> PodDocument | None:
        """The pod as the kubelet has it. Raises SourceFailed."""
        found = self._among(wanted)
        if found is not None:
            return found
        async with self._reading:
            # Somebody else may have read the list while this waited for its turn.
            if (found := self._among(wanted)) is not None:
                return found
            self._pods = await self._list()
            self._read_at = asyncio.get_running_loop().time()
        return self._among(wanted)

    async def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            await self._session.close()

    def _among(self, wanted: Wanted) -> PodDocument | None:
        if asyncio.get_running_loop().time() - self._read_at > _KEPT:
            return None
        return next((pod for pod in self._pods if wanted.is_shown_by(pod)), None)

    async def _list(self) -> tuple[PodDocument, ...]:
        from aiohttp import ClientError  # noqa: PLC0415 - costs memory

        session = self._connected()
        try:
            headers = await asyncio.to_thread(self._headers)
            async with session.get(
                self._url, headers=headers, ssl=await asyncio.to_thread(self._tls)
            ) as response:
                data = await response.content.read(-1) if response.status == 200 else b""
                if response.status != 200:
                    raise SourceFailed(f"{self._url}: status {response.status}")
        except (ClientError, OSError, ValueError) as error:
            raise SourceFailed(f"{self._url}: {error}") from error
        return await asyncio.to_thread(_pods_in, data, self._url)

    def _connected(self) -> ClientSession:
        from aiohttp import ClientSession, ClientTimeout  # noqa: PLC0415

        if self._session is None:
            self._session = ClientSession(timeout=ClientTimeout(total=None))
        return self._session

    def _headers(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        token = self._token_file.read_text(encoding="ascii").strip()
        return {"Authorization": f"Bearer {token}"}

    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._ca_file)


def _pods_in(data: bytes, url: str) -> tuple[PodDocument, ...]:
    import json  # noqa: PLC0415

    if len(data) > _LARGEST:
        raise SourceFailed(f"{url}: the answer is too long")
    try:
        document: Any = json.loads(data)
        items = document["items"] or []
        return tuple(item for item in items if isinstance(item, dict))
    except (ValueError, KeyError, TypeError) as error:
        raise SourceFailed(f"{url}: is no list of pods ({error})") from error
