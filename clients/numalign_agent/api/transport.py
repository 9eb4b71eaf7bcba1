"""How a request gets to an API server, and as whom.

There are two ways: `service_account` from within a pod, `official_client` by a kubeconfig.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientTimeout

AGENT = "numalign-agent"
"""What the agent calls itself."""

Body = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Transport(Protocol):
    """Sends requests to one server; an answer that is an error is an answer."""

    @property
    def address(self) -> str:
        """Where the server is, as logs name it."""

    async def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: Body | None,
        timeout: ClientTimeout,  # noqa: ASYNC109 - it is the client's own kind
    ) -> ClientResponse:
        """Send one request. Raises what aiohttp raises, and OSError."""

    async def close(self) -> None:
        """Close the connections."""
