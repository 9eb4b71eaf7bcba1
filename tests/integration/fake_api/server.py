"""A real HTTP server that answers as an API server does, and fails as one can."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from tests.integration.fake_api.execution import Execution
from tests.integration.fake_api.store import Json, Problem, Store, event_of, has

TOKEN = "s3cret"

_REASONS = {401: "Unauthorized", 403: "Forbidden"}

CUSTOM = "noderesourcetopologies"
"""A collection that a cluster has only where its kind was defined there."""


@dataclass(slots=True)
class Faults:
    """What goes wrong. `fail`: HTTP statuses of the next answers. `piece`: bytes that a watch
    sends at a time, with a pause after each. `mute`: watches that begin say nothing. `forbidden`:
    methods and collections, as `PATCH nodes`, for which there is no right. `overtaken`: what
    somebody else does just before the next changes of objects."""

    fail: list[int] = field(default_factory=list)
    forbidden: set[str] = field(default_factory=set)
    overtaken: list[Callable[[], object]] = field(default_factory=list)
    piece: int = 0
    mute: bool = False
    garbage: bytes = b""


class FakeApiServer:
    """Lists, watches, single objects, `status` sub-resources; bearer token required."""

    def __init__(self, execution: Execution | None = None) -> None:
        """An API server; with `execution`, commands can be run in pods.

        Then no token is asked for: kubectl sends none without TLS.
        """
        self.execution = execution
        self.store = Store()
        self.faults = Faults()
        self.requests: list[str] = []
        self.has_custom = False
        self.url = ""
        self.bookmark_every = 0.05
        self.bookmarked = 0
        self._watches: dict[asyncio.Event, web.Request] = {}
        self._runner: web.AppRunner | None = None
        self._port = 0
        self.store.changed.append(self._wake)

    async def start(self) -> None:
        application = web.Application(middlewares=[self._answer])
        for prefix in ("/api/v1", "/apis/{group}/{version}"):
            for scope in ("", "/namespaces/{namespace}"):
                base = f"{prefix}{scope}/{{collection}}"
                application.router.add_route("*", base, self._collection)
                application.router.add_route("*", f"{base}/{{name}}", self._object)
                application.router.add_route("*", f"{base}/{{name}}/status", self._object)
        if self.execution is not None:
            self.execution.add_to(application)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Nobody listens any more; what is kept stays for the next start."""
        self.drop_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def watching(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    def drop_watches(self) -> None:
        """Cut the connections of all watches in the middle of whatever they say."""
        for request in list(self._watches.values()):
            if request.transport is not None:
                request.transport.abort()

    def kubeconfig(self, path: Path, token: str = TOKEN) -> Path:
        """A kubeconfig for this server, written to `path`."""
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "fake",
                    "contexts": [{"name": "fake", "context": {"cluster": "c", "user": "u"}}],
                    "clusters": [{"name": "c", "cluster": {"server": self.url}}],
                    "users": [{"name": "u", "user": {"token": token}}],
                }
            ),
            encoding="utf-8",
        )
        return path

    @web.middleware
    async def _answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path_qs}")
        if self.faults.fail:
            status = self.faults.fail.pop(0)
            return _refusal(Problem(status, _REASONS.get(status, "Injected"), "as the test wants"))
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        is_known = (scheme.lower(), token) == ("bearer", TOKEN)
        if self.execution is None and not is_known:
            return _refusal(Problem(401, "Unauthorized"))
        collection = request.match_info.get("collection", "")
        if f"{request.method} {collection}" in self.faults.forbidden:
            text = f'{collection} is forbidden: User "u" cannot do this'
            return _refusal(Problem(403, "Forbidden", text))
        if collection == CUSTOM and not self.has_custom:
            text = "the server could not find the requested resource"
            return _refusal(Problem(404, "NotFound", text))
        try:
            answer: web.StreamResponse = await handler(request)
        except Problem as problem:
            return _refusal(problem)
        return answer

    def _wake(self) -> None:
        for watch in self._watches:
            watch.set()

    async def _collection(self, request: web.Request) -> web.StreamResponse:
        collection, namespace = _place(request)
        if request.method == "POST":
            made = self.store.create(collection, namespace, await request.json())
            return web.json_response(made, status=201)
        if request.query.get("watch") == "true":
            return await self._watch(request, collection)
        return web.json_response(self._list(request, collection))

    async def _object(self, request: web.Request) -> web.StreamResponse:
        collection, namespace = _place(request)
        name = request.match_info["name"]
        part = "status" if request.path.endswith("/status") else ""
        if request.method in {"PUT", "PATCH"} and self.faults.overtaken:
            self.faults.overtaken.pop(0)()
        match request.method:
            case "GET":
                answer = self.store.get(collection, namespace, name)
            case "PUT":
                answer = self.store.update(collection, namespace, name, await request.json())
            case "PATCH":
                answer = self._patched(request, await request.json(), part)
            case "DELETE":
                answer = self.store.delete(collection, namespace, name, await request.json())
            case method:
                raise Problem(405, "MethodNotAllowed", method)
        return web.json_response(answer)

    def _patched(self, request: web.Request, patch: Any, part: str) -> Json:
        collection, namespace = _place(request)
        name = request.match_info["name"]
        if request.content_type == "application/json-patch+json":
            return self.store.json_patch(collection, namespace, name, patch)
        assert request.content_type == "application/strategic-merge-patch+json"
        return self.store.patch(collection, namespace, name, patch, part=part)

    def _list(self, request: web.Request, collection: str) -> Json:
        selector = request.query.get("fieldSelector", "")
        labels = request.query.get("labelSelector", "")
        items = [item for item in self.store.all(collection, selector) if has(item, labels)]
        first = int(request.query.get("continue", 0))
        beyond = first + int(request.query.get("limit", len(items) or 1))
        metadata: Json = {"resourceVersion": str(self.store.version)}
        if beyond < len(items):
            metadata["continue"] = str(beyond)
        return {"kind": "List", "metadata": metadata, "items": items[first:beyond]}

    async def _watch(self, request: web.Request, collection: str) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        selector = request.query.get("fieldSelector", "")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        more = asyncio.Event()
        self._watches[more] = request
        try:
            async with asyncio.timeout(int(request.query["timeoutSeconds"])):
                await self._send_events(response, more, collection, selector, version)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            del self._watches[more]
        return response

    async def _send_events(
        self,
        response: web.StreamResponse,
        more: asyncio.Event,
        collection: str,
        selector: str,
        version: int,
    ) -> None:
        if self.faults.mute:
            await asyncio.Event().wait()
        while True:
            more.clear()
            if version < self.store.oldest:
                gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
                await self._send(response, {"type": "ERROR", "object": gone})
                return
            for change in [c for c in self.store.history if c.version > version]:
                version = change.version
                event = event_of(change, selector) if change.collection == collection else None
                if event is not None:
                    await self._send(response, event)
            if self.faults.garbage:
                garbage, self.faults.garbage = self.faults.garbage, b""
                await response.write(garbage)
            try:
                await asyncio.wait_for(more.wait(), self.bookmark_every)
            except TimeoutError:
                if more.is_set():
                    continue  # a bookmark says that everything before it was told
                version = self.store.version
                bookmark = {"metadata": {"resourceVersion": str(version)}}
                await self._send(response, {"type": "BOOKMARK", "object": bookmark})
                self.bookmarked = version

    async def _send(self, response: web.StreamResponse, event: Json) -> None:
        line = json.dumps(event).encode() + b"\n"
        piece = self.faults.piece or len(line)
        for start in range(0, len(line), piece):
            await response.write(line[start : start + piece])
            if self.faults.piece:
                await asyncio.sleep(0.002)


def _place(request: web.Request) -> tuple[str, str]:
    return request.match_info["collection"], request.match_info.get("namespace", "")


def _refusal(problem: Problem) -> web.Response:
    body = {
        "kind": "Status",
        "status": "Failure",
        "code": problem.status,
        "reason": problem.reason,
        "message": str(problem),
    }
    return web.json_response(body, status=problem.status)


@asynccontextmanager
async def fake_api_server(execution: Execution | None = None) -> AsyncIterator[FakeApiServer]:
    """A server that listens inside of the block."""
    server = FakeApiServer(execution)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
