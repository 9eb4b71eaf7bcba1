"""A container runtime's NRI over a real socket: registers plugins, asks them, and obeys them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.unit.agent.nri.go_framing import GoPeer

from numalign.kube.nri.v1alpha1 import api_pb2 as nri


class Connection:
    """One plugin's connection, after it was registered and synchronized."""

    def __init__(self, peer: GoPeer, name: str, events: int) -> None:
        self.peer = peer
        self.name = name
        self.events = events

    async def call(self, method: str, request: Any, kind: Any, *, seconds: float = 5) -> Any:
        """Call the plugin; its answer, or the status as an exception."""
        answer = await self.peer.call(method, request.SerializeToString(), seconds=seconds)
        if answer.status.code:
            raise RuntimeError(answer.status.message)
        return kind.FromString(answer.payload)


class FakeRuntime:
    """Listens at a socket. `cpus` is what it has set, by container; `kernel` files follow."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pods: list[nri.PodSandbox] = []
        self.containers: list[nri.Container] = []
        self.cpus: dict[str, str] = {}
        self.kernel: dict[str, Path] = {}
        self.registered: list[str] = []
        self.plugins: asyncio.Queue[Connection] = asyncio.Queue()
        self.refuse = ""
        self.mute = False
        self.parts = 1
        self.deaf_to: set[str] = set()
        self.unsolicited: list[list[str]] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._peers: set[GoPeer] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._accept, self.path)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for peer in tuple(self._peers):
            await peer.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.path.unlink(missing_ok=True)

    async def plugin(self) -> Connection:
        """The next plugin that stays: short registrations are left out."""
        async with asyncio.timeout(60):
            return await self.plugins.get()

    def has(self, pod: nri.PodSandbox, container: nri.Container) -> None:
        """A pod with a container is there."""
        self.pods.append(pod)
        self.containers.append(container)

    def obey(self, updates: Any) -> None:
        for update in updates:
            if update.container_id in self.deaf_to:
                continue
            cpu = update.linux.resources.cpu
            if cpu.cpus:
                self.cpus[update.container_id] = cpu.cpus
                if update.container_id in self.kernel:
                    self.kernel[update.container_id].write_text(cpu.cpus)
            for container in self.containers:
                if container.id == update.container_id:
                    container.linux.resources.cpu.MergeFrom(cpu)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = GoPeer(reader, writer)
        self._peers.add(peer)
        task = asyncio.create_task(self._serve(peer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, peer: GoPeer) -> None:
        stream, request = await peer.calls.get()
        assert request.method == "RegisterPlugin"
        registration = nri.RegisterPluginRequest.FromString(request.payload)
        self.registered.append(f"{registration.plugin_idx}-{registration.plugin_name}")
        if self.refuse:
            peer.answer(stream, code=9, message=self.refuse)
            return
        peer.answer(stream)
        if self.mute:
            return
        configure = nri.ConfigureRequest(runtime_name="containerd", runtime_version="1.7.24")
        answer = await peer.call("Configure", configure.SerializeToString())
        events = nri.ConfigureResponse.FromString(answer.payload).events
        await self._synchronize(peer)
        if registration.plugin_name == "numalign":
            self.plugins.put_nowait(Connection(peer, registration.plugin_name, events))
        while True:
            stream, request = await peer.calls.get()
            assert request.method == "UpdateContainers"
            updates = nri.UpdateContainersRequest.FromString(request.payload).update
            self.unsolicited.append([update.container_id for update in updates])
            self.obey(updates)
            failed = [u for u in updates if u.container_id in self.deaf_to]
            response = nri.UpdateContainersResponse(failed=failed)
            peer.answer(stream, response.SerializeToString())

    async def _synchronize(self, peer: GoPeer) -> None:
        for part in range(self.parts):
            request = nri.SynchronizeRequest(
                pods=self.pods[part :: self.parts],
                containers=self.containers[part :: self.parts],
                more=part < self.parts - 1,
            )
            answer = await peer.call("Synchronize", request.SerializeToString(), seconds=5)
            response = nri.SynchronizeResponse.FromString(answer.payload)
            assert response.more == request.more
            assert not (response.more and response.update)
            self.obey(response.update)


@asynccontextmanager
async def fake_runtime(path: Path) -> AsyncIterator[FakeRuntime]:
    """A runtime that listens inside of the block."""
    runtime = FakeRuntime(path)
    await runtime.start()
    try:
        yield runtime
    finally:
        await runtime.stop()
