"""One API server: JSON objects go in and come out as they are, over either transport."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numalign_agent.api.errors import Refused, Unreachable
from numalign_agent.api.official_client import OfficialClient
from numalign_agent.api.service_account import ServiceAccount
from numalign_agent.api.transport import Body, Transport

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientTimeout

Json = dict[str, Any]

CALL_SECONDS = 30.0
"""How long a call may take that is no watch."""

CONNECT_SECONDS = 10.0
MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_FIRST_ERROR = 400


class ApiServer:
    """Calls to one API server. Each raises Refused or Unreachable where it does not succeed."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def address(self) -> str:
        """Where the server is, as logs name it."""
        return self._transport.address

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read an object or a list."""
        return await self._call("GET", path, query=query)

    async def create(self, path: str, obj: Mapping[str, Any]) -> Json:
        """Add an object to a collection."""
        return await self._call("POST", path, body=obj)

    async def replace(self, path: str, obj: Mapping[str, Any]) -> Json:
        """Put an object in the place of the one that is there."""
        return await self._call("PUT", path, body=obj)

    async def patch(self, path: str, patch: Mapping[str, Any]) -> Json:
        """Merge a patch into an object; lists by their keys, as Kubernetes does."""
        return await self._call("PATCH", path, body=patch, content_type=MERGE_PATCH)

    async def json_patch(self, path: str, patch: Sequence[Mapping[str, Any]]) -> Json:
        """Change an object by operations; all of them, or where a test of theirs fails none."""
        return await self._call("PATCH", path, body=list(patch), content_type=JSON_PATCH)

    async def delete(self, path: str, *, uid: str, grace_seconds: int) -> Json:
        """Delete an object if it is still the one of this UID."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": grace_seconds,
            "preconditions": {"uid": uid},
        }
        return await self._call("DELETE", path, body=options)

    @asynccontextmanager
    async def watch(
        self, path: str, query: Mapping[str, str], idle_seconds: float
    ) -> AsyncGenerator[AsyncIterator[Json]]:
        """A watch that has begun: its events, until the server ends it.

        Raises Unreachable also where nothing comes for `idle_seconds`, and for what is no event.
        """
        from aiohttp import ClientTimeout  # noqa: PLC0415 - only where it is used

        timeout = ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=idle_seconds)
        response = await self._send("GET", path, {**query, "watch": "true"}, None, "", timeout)
        try:
            with _unreachable(path, f"nothing came for {idle_seconds:g} s"):
                await _check(response)
            yield _events(response, path, idle_seconds)
        finally:
            response.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        content_type: str = "application/json",
    ) -> Json:
        from aiohttp import ClientTimeout  # noqa: PLC0415 - as above

        timeout = ClientTimeout(total=CALL_SECONDS, sock_connect=CONNECT_SECONDS)
        response = await self._send(method, path, query, body, content_type, timeout)
        try:
            with _unreachable(f"{method} {path}", f"no answer within {CALL_SECONDS:g} s"):
                await _check(response)
                return _object(await response.read())
        finally:
            response.release()

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Body | None,
        content_type: str,
        timeout: ClientTimeout,  # noqa: ASYNC109 - it is the client's own kind
    ) -> ClientResponse:
        headers = {"Accept": "application/json"}
        if content_type:
            headers["Content-Type"] = content_type
        with _unreachable(f"{method} {path}", "no answer in time"):
            return await self._transport.send(method, path, query or {}, headers, body, timeout)


async def connect(kubeconfig: Path | None, context: str = "") -> ApiServer:
    """The server of a kubeconfig's context; None: the one whose service account this pod has.

    Nothing is sent yet. Raises ApiError for credentials that cannot be used.
    """
    if kubeconfig is None:
        return ApiServer(ServiceAccount.found(os.environ))
    return ApiServer(await OfficialClient.of(kubeconfig, context))


async def _events(response: ClientResponse, path: str, idle_seconds: float) -> AsyncIterator[Json]:
    while True:
        with _unreachable(path, f"nothing came for {idle_seconds:g} s"):
            line = await response.content.readline()
            if not line:
                return
            event = _event(line)
        yield event


@contextmanager
def _unreachable(what: str, late: str) -> Iterator[None]:
    """Whatever keeps a call from an answer that can be read becomes Unreachable."""
    from aiohttp import ClientError, ClientPayloadError  # noqa: PLC0415 - as above

    try:
        yield
    except TimeoutError as error:
        raise Unreachable(f"{what}: {late}") from error
    except ClientPayloadError as error:
        raise Unreachable(f"{what}: the answer broke off") from error
    except (ClientError, OSError, ValueError) as error:
        raise Unreachable(f"{what}: {_text(error)}") from error


async def _check(response: ClientResponse) -> None:
    """Raise what an answer that is an error says."""
    if response.status < _FIRST_ERROR:
        return
    text = await response.text(errors="replace")
    try:
        status = json.loads(text)
    except ValueError:
        status = {"message": " ".join(text.split())[:200]}
    if not isinstance(status, dict):
        status = {}
    reason = str(status.get("reason") or response.reason or "")
    raise Refused(response.status, reason, str(status.get("message") or ""))


def _object(data: bytes) -> Json:
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError("the answer is no object")  # noqa: TRY004 - like text that is no JSON
    return value


def _event(line: bytes) -> Json:
    event = _object(line)
    if not isinstance(event.get("type"), str) or not isinstance(event.get("object"), dict):
        raise ValueError("what came is no event of a watch")  # noqa: TRY004 - as above
    return event


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
