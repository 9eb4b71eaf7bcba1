"""A hint provider whose author writes coroutines: the class to subclass, and how it is run.

The rest of the contract is that of the synchronous provider, which runs in threads; each
decision goes from there to the event loop of the author, and the answer back.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from numalign.kube.core.v1 import core_pb2
from numalign_client.provider.amounts import whole_pod
from numalign_client.provider.base import Grant, Hints, not_served, refuse_taken
from numalign_client.provider.books import Books
from numalign_client.provider.registration import Registrar
from numalign_client.provider.server import ProviderServer
from numalign_client.signals import until_signalled

T = TypeVar("T")


class AsyncHintProvider(ABC):
    """A provider of some resources. Subclass it, and run it with an `AsyncProviderServer`.

    What `SimpleHintProvider` says of its methods holds here too: calls come one at a time, and
    `hints` and `allocate` only choose.
    """

    name: ClassVar[str]
    resources: ClassVar[Sequence[str]]

    _books: Books | None = None

    @abstractmethod
    async def hints(self, pod: core_pb2.Pod, container: core_pb2.Container) -> Hints | None:
        """Where the container's request could go; None if it asks for nothing of this kind."""

    @abstractmethod
    async def allocate(
        self, pod: core_pb2.Pod, container: core_pb2.Container, nodes: frozenset[int] | None
    ) -> Mapping[str, Sequence[str] | Grant]:
        """What the container gets, by resource: ids, or a Grant.

        `nodes` are the NUMA nodes that were chosen for the container, None if any will do.
        Raises CannotAllocate.
        """

    async def release(self, pod_uid: str) -> None:  # noqa: B027 - for authors who need it
        """The pod holds nothing any more. May be called for a pod that never held anything."""

    async def committed(self, pod_uid: str) -> None:  # noqa: B027 - for authors who need it
        """The pod is admitted with what it was given. May be called again after a restart."""

    async def take_back(self, pod_uid: str, resource: str, ids: Sequence[str]) -> None:
        """The books have lost these ids of a pod that still has them: it holds them again.

        Raises CannotAllocate if it cannot have them any more. By default it can, unless another
        pod was given one of them since. `committed` follows.
        """
        refuse_taken(self._bound(), pod_uid, resource, ids)

    async def pod_hints(self, pod: core_pb2.Pod) -> Hints | None:
        """Where the request of the whole pod could go (scope `pod`).

        By default the hints of a container without a name that asks for the most that the
        pod's containers ask for at one time.
        """
        return await self.hints(pod, whole_pod(pod, self.resources))

    def taken(self, resource: str) -> frozenset[str]:
        """Ids of a resource that anybody holds, the admission in hand included."""
        return self._bound().taken(resource)

    def bind(self, books: Books) -> None:
        """Give the provider its books; called by whoever serves it."""
        self._books = books

    def _bound(self) -> Books:
        if self._books is None:
            raise not_served(self.name)
        return self._books


class OnEventLoop:
    """A provider for threads around one that lives on `loop`, which must be another thread's."""

    def __init__(self, provider: AsyncHintProvider, loop: asyncio.AbstractEventLoop) -> None:
        self._provider = provider
        self._loop = loop

    @property
    def name(self) -> str:
        """Name of the provider."""
        return self._provider.name

    @property
    def resources(self) -> Sequence[str]:
        """Resources that it serves."""
        return self._provider.resources

    def bind(self, books: Books) -> None:
        """Give the provider its books."""
        self._provider.bind(books)

    def hints(self, pod: core_pb2.Pod, container: core_pb2.Container) -> Hints | None:
        """Where the container's request could go."""
        return self._wait(self._provider.hints(pod, container))

    def pod_hints(self, pod: core_pb2.Pod) -> Hints | None:
        """Where the request of the whole pod could go."""
        return self._wait(self._provider.pod_hints(pod))

    def allocate(
        self, pod: core_pb2.Pod, container: core_pb2.Container, nodes: frozenset[int] | None
    ) -> Mapping[str, Sequence[str] | Grant]:
        """What the container gets."""
        return self._wait(self._provider.allocate(pod, container, nodes))

    def release(self, pod_uid: str) -> None:
        """The pod holds nothing any more."""
        self._wait(self._provider.release(pod_uid))

    def committed(self, pod_uid: str) -> None:
        """The pod is admitted."""
        self._wait(self._provider.committed(pod_uid))

    def take_back(self, pod_uid: str, resource: str, ids: Sequence[str]) -> None:
        """The pod holds these ids again."""
        self._wait(self._provider.take_back(pod_uid, resource, ids))

    def _wait(self, answer: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(answer, self._loop).result()


class AsyncProviderServer:
    """Serves a provider on `socket`, as an asynchronous context manager or with `run`.

    The other arguments are those of `ProviderServer`.

    >>> AsyncProviderServer(CacheWays(), "/run/cache-ways/hints.sock").run()
    """

    def __init__(
        self,
        provider: AsyncHintProvider,
        socket: str | os.PathLike[str],
        *,
        state: str | os.PathLike[str] | None = None,
        topology_manager: str | os.PathLike[str] | None = None,
        ignore_failure: bool = False,
        timeout: float | None = None,
    ) -> None:
        self._provider = provider
        self._socket = socket
        self._state = state
        self._topology_manager = topology_manager
        self._ignore_failure = ignore_failure
        self._timeout = timeout
        self._server: ProviderServer | None = None

    @property
    def registrar(self) -> Registrar | None:
        """Who keeps the provider registered; None without a Topology Manager."""
        return None if self._server is None else self._server.registrar

    async def start(self) -> None:
        """Listen, and register. Raises StateFileError, and RuntimeError for a socket."""
        server = ProviderServer(
            OnEventLoop(self._provider, asyncio.get_running_loop()),
            self._socket,
            state=self._state,
            topology_manager=self._topology_manager,
            ignore_failure=self._ignore_failure,
            timeout=self._timeout,
        )
        await asyncio.to_thread(server.start)
        self._server = server

    async def stop(self, grace: float = 2.0) -> None:
        """Stop taking calls, let those in hand end within `grace` seconds, close everything."""
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.stop, grace)

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT, on an event loop of its own. From the main thread."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with self:
            await until_signalled()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()
