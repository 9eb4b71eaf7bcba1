"""`pods/exec` of a fake API server, as kubectl speaks it over a WebSocket: commands run here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import WSMsgType, web
from tests.integration.fake_api.store import Problem

_PROTOCOL = "v5.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255

DISCOVERY: Mapping[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": []}
        ],
    },
}
"""What kubectl asks before it names an object: which kinds there are."""


class Execution:
    """Answers `exec`. `programs` says what a program's name stands for here.

    `forbidden`: whoever asks may not. `started` are the commands, with their containers.
    """

    def __init__(self, programs: Mapping[str, Sequence[str]]) -> None:
        self.programs = programs
        self.forbidden = False
        self.started: list[tuple[str, list[str]]] = []

    def add_to(self, application: web.Application) -> None:
        for path, document in DISCOVERY.items():
            application.router.add_get(path, _answering(document))
        application.router.add_route(
            "*", "/api/v1/namespaces/{namespace}/pods/{name}/exec", self._exec
        )

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        if self.forbidden:
            raise Problem(
                403,
                "Forbidden",
                f'pods "{request.match_info["name"]}" is forbidden: User "u" cannot create '
                'resource "pods/exec" in API group "" in the namespace "numalign-system"',
            )
        socket = web.WebSocketResponse(protocols=(_PROTOCOL,))
        if not socket.can_prepare(request):
            raise Problem(400, "BadRequest", "only WebSockets are spoken here")
        await socket.prepare(request)
        command = request.query.getall("command")
        self.started.append((request.query["container"], command))
        if command[0] not in self.programs:
            said = f'exec: "{command[0]}": executable file not found in $PATH'
            await _send(socket, _ERROR, _failure(said))
            return socket
        process = await asyncio.create_subprocess_exec(
            *self.programs[command[0]],
            *command[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        told = asyncio.create_task(_tell(socket, process))
        try:
            await asyncio.gather(
                _forward(socket, process.stdout, _STDOUT), _forward(socket, process.stderr, _STDERR)
            )
            code = await process.wait()
            await _send(socket, _ERROR, _ended(code))
            await socket.close()
        except ConnectionError:
            pass
        finally:
            told.cancel()
            if process.returncode is None:
                process.kill()
                await process.wait()
        return socket


def _answering(document: object) -> Any:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(document)

    return answer


async def _tell(socket: web.WebSocketResponse, process: asyncio.subprocess.Process) -> None:
    """What the other side says goes in, until it says that this is all, or is gone."""
    assert process.stdin is not None
    async for message in socket:
        if message.type is not WSMsgType.BINARY:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == _STDIN:
            process.stdin.write(data)
            await process.stdin.drain()
        elif channel == _CLOSE:
            process.stdin.close()
    if process.returncode is None:
        process.kill()


async def _forward(
    socket: web.WebSocketResponse, source: asyncio.StreamReader | None, channel: int
) -> None:
    assert source is not None
    while piece := await source.read(1 << 15):
        await _send(socket, channel, piece)


async def _send(socket: web.WebSocketResponse, channel: int, data: bytes) -> None:
    await socket.send_bytes(bytes([channel]) + data)


def _ended(code: int) -> bytes:
    if code == 0:
        return json.dumps({"metadata": {}, "status": "Success"}).encode()
    status = {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
    return json.dumps(status).encode()


def _failure(message: str) -> bytes:
    status = {"metadata": {}, "status": "Failure", "reason": "InternalError", "message": message}
    return json.dumps(status).encode()
