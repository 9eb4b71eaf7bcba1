"""To the API server of the cluster that this pod runs in, as the pod's service account.

It takes three files and two variables. The official client does the same; but where its package is
imported a process holds 40 MB more, and each pod of numalign has two such processes.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from numalign_agent.api.errors import ApiError
from numalign_agent.api.transport import AGENT, Body

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientTimeout

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"

_TOKEN_SECONDS = 60.0
"""How long a token that was read is used: the kubelet renews the file."""


class ServiceAccount:
    """A Transport. `token_read_at` is when the token was read last, on the monotonic clock."""

    def __init__(self, address: str, token: Path, tls: ssl.SSLContext) -> None:
        self.address = address
        self._token_file = token
        self._tls = tls
        self._session: ClientSession | None = None
        self._token, self.token_read_at = "", 0.0

    @classmethod
    def found(cls, env: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> ServiceAccount:
        """That of this pod. Raises ApiError where there is none, or its files are none."""
        host, port = env.get(HOST, ""), env.get(PORT, "")
        if not host or not port:
            raise ApiError(
                f"service account: cannot be used: {HOST} and {PORT} are not set, so this is no "
                "pod; give a kubeconfig (numalign.agent.api.kubeconfig)"
            )
        token, authority = directory / "token", directory / "ca.crt"
        try:
            tls = ssl.create_default_context(cafile=str(authority))
        except (OSError, ssl.SSLError) as error:
            raise ApiError(f"service account: cannot be used: {authority}: {error}") from error
        account = cls(f"https://{f'[{host}]' if ':' in host else host}:{port}", token, tls)
        try:
            account.token(time.monotonic())
        except OSError as error:
            raise ApiError(f"service account: cannot be used: {error}") from error
        return account

    def token(self, now: float) -> str:
        """The token, read again now and then. Raises OSError."""
        if not self._token or now - self.token_read_at >= _TOKEN_SECONDS:
            token = self._token_file.read_text(encoding="utf-8").strip()
            if not token:
                raise OSError(f"{self._token_file}: the file is empty")
            self._token, self.token_read_at = token, now
        return self._token

    async def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: Body | None,
        timeout: ClientTimeout,  # noqa: ASYNC109 - as above
    ) -> ClientResponse:
        """See Transport."""
        from aiohttp import ClientSession, TCPConnector  # noqa: PLC0415 - only where it is used
        from yarl import URL  # noqa: PLC0415 - as above

        if self._session is None:
            self._session = ClientSession(connector=TCPConnector(ssl=self._tls))
        return await self._session.request(
            method,
            # The names in a path are quoted already.
            URL(self.address + path, encoded=True),
            params=query,
            headers={
                **headers,
                "Authorization": f"Bearer {self.token(time.monotonic())}",
                "User-Agent": AGENT,
            },
            data=None if body is None else json.dumps(body),
            timeout=timeout,
            allow_redirects=False,
        )

    async def close(self) -> None:
        """See Transport."""
        if self._session is not None:
            await self._session.close()
