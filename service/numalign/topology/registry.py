"""The hint providers that the Topology Manager asks, in order, and the watch over them.

Order: device, cpu, memory (TM-18), then third parties as they registered. Separate from the
manager because providers come, go and restart by themselves, while admissions need them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import Context

from grpc import aio

from numalign.errors import AlreadyExists, FieldViolation, InvalidInput, NotFound, NumalignError
from numalign.telemetry.logs import get_logger
from numalign.topology.provider_handle import ProviderDown, ProviderHandle
from numalign.v1 import hint_provider_pb2 as hp

_log = get_logger("topology")

RETRY_SECONDS = 0.2
"""How long to wait before a provider that is gone is watched again."""

_RECALLED = (
    "it registered with an earlier process of the Topology Manager and has not answered this one; "
    "numalign providers --forget ends the wait"
)

WatchListener = Callable[[ProviderHandle, hp.WatchResponse], Awaitable[None]]
"""Hears what a provider tells others between calls."""

Introduce = Callable[[ProviderHandle], Awaitable[None]]
"""Tells a provider the picture; raises ProviderDown where it does not answer."""


Met = Callable[[ProviderHandle], None]
"""Hears of a provider that is among the registered ones from now on, or no longer."""


def _nobody(handle: ProviderHandle) -> None:
    """Nobody wants to know of `handle`."""


class ProviderRegistry:
    """The providers.

    `on_told` hears what each of them tells in its watch, `met` of each, and `left` of one that is
    not asked any more.
    """

    def __init__(
        self,
        handles: Iterable[ProviderHandle],
        on_told: WatchListener,
        met: Met = _nobody,
        left: Met = _nobody,
    ) -> None:
        self._handles = list(handles)
        self._on_told = on_told
        self._met = met
        self._left = left
        for handle in self._handles:
            met(handle)
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._strangers = asyncio.Event()
        self._changes = 0
        self._changed = asyncio.Event()

    @property
    def changes(self) -> int:
        """How often a provider has said that its books changed."""
        return self._changes

    async def wait_changed(self, seen: int) -> None:
        """Wait until `changes` is another than `seen`."""
        while self._changes == seen:
            await self._changed.wait()

    @property
    def handles(self) -> tuple[ProviderHandle, ...]:
        """The providers, in the order in which they are asked."""
        return tuple(self._handles)

    def watch_all(self) -> None:
        """Begin to watch every provider."""
        for handle in self._handles:
            self._watch(handle)

    async def close(self) -> None:
        """See the outcomes delivered, and stop watching."""
        await asyncio.gather(*(handle.delivered() for handle in self._handles))
        for task in self._watches.values():
            task.cancel()
        await asyncio.gather(*self._watches.values(), return_exceptions=True)
        self._watches.clear()

    async def ready(self, introduce: Introduce) -> None:
        """See that every provider has the outcomes of the past and knows the picture.

        `introduce` tells one that does not. Called with the node's turn held. Raises
        ProviderDown for one that cannot be reached and must not be ignored.
        """
        await all_delivered(self._handles)
        strangers = [handle for handle in self._handles if not handle.instance_id]
        if not strangers:
            return
        outcomes = await asyncio.gather(
            *(introduce(handle) for handle in strangers), return_exceptions=True
        )
        for handle, outcome in zip(strangers, outcomes, strict=True):
            if isinstance(outcome, ProviderDown) and handle.may_be_ignored:
                continue
            if isinstance(outcome, ProviderDown) and handle.recalled:
                raise ProviderDown(handle.name, f"{outcome.why} ({_RECALLED})") from outcome
            if isinstance(outcome, BaseException):
                raise outcome

    async def wait_stranger(self) -> None:
        """Wait until a provider that is watched has not been told how things are now."""
        await self._strangers.wait()
        self._strangers.clear()

    @property
    def lacks_recalled_alone(self) -> bool:
        """Whether all have been told the picture but such that this process only knows of."""
        return all(
            handle.instance_id or handle.recalled or handle.may_be_ignored
            for handle in self._handles
        )

    def named(self, name: str) -> ProviderHandle | None:
        """The provider of that name."""
        return next((handle for handle in self._handles if handle.name == name), None)

    def forget_refitted(self) -> None:
        """Have the providers that fitted their books anew be told the picture again."""
        for handle in self._handles:
            if handle.refitted:
                handle.refitted = False
                handle.instance_id = ""

    def forget_processes(self) -> None:
        """Have every provider be told the picture again before it is asked to decide."""
        for handle in self._handles:
            handle.instance_id = ""

    async def register(self, handle: ProviderHandle) -> None:
        """Add a third-party provider, or change the settings of one under the same endpoint.

        One that is only recalled may have moved elsewhere since. Raises AlreadyExists for a name,
        or a resource, that is another provider's, and ProviderDown if it does not answer.
        """
        info = await handle.call(
            lambda: handle.stub.GetInfo(hp.GetInfoRequest(), timeout=handle.timeout)
        )
        handle.resources = tuple(info.resources)
        others = []
        for other in self._handles:
            if other.name == handle.name:
                if other.built_in or (other.endpoint != handle.endpoint and not other.recalled):
                    raise AlreadyExists(
                        f'name: provider "{other.name}" is registered at {other.endpoint}'
                    )
            else:
                others.append(other)
        for other in others:
            for resource in handle.resources:
                for served in other.resources:
                    if overlap(resource, served):
                        raise AlreadyExists(
                            f'resources: "{resource}" of provider "{handle.name}" is served by '
                            f'provider "{other.name}" (as "{served}")'
                        )
        before = self.named(handle.name)
        handle.registered = before is None or before.registered
        self._handles = [h for h in self._handles if h.name != handle.name] + [handle]
        self._met(handle)
        self._watch(handle)

    def recall(self, handle: ProviderHandle) -> None:
        """Add a third-party provider that registered with an earlier process; before any watch."""
        handle.registered = handle.recalled = True
        self._handles.append(handle)
        self._met(handle)

    async def deregister(self, name: str) -> None:
        """Take out a provider that has registered. The pods keep what their record says.

        Raises what `require_registered` does.
        """
        handle = self.require_registered(name)
        await handle.delivered()
        self._handles.remove(handle)
        self._left(handle)
        watch = self._watches.pop(name, None)
        if watch is not None:
            watch.cancel()

    def require_registered(self, name: str) -> ProviderHandle:
        """The provider of that name, which has registered.

        Raises NotFound, and InvalidInput for one that is there by the configuration.
        """
        handle = self.named(name)
        if handle is None:
            raise NotFound(f'name: no hint provider "{name}" is registered')
        if not handle.registered:
            raise InvalidInput(
                FieldViolation("name", f'Invalid value: "{name}" is there by the configuration')
            )
        return handle

    def _watch(self, handle: ProviderHandle) -> None:
        old = self._watches.pop(handle.name, None)
        if old is not None:
            old.cancel()
        # In a context of its own: a watch outlives the call that registered the provider, and
        # must not inherit its deadline or its trace.
        self._watches[handle.name] = asyncio.get_running_loop().create_task(
            self._follow(handle), context=Context()
        )

    async def _follow(self, handle: ProviderHandle) -> None:
        complaint = ""
        while True:
            stream = handle.stub.Watch(hp.WatchRequest())
            try:
                async for event in stream:
                    handle.last_error = ""
                    handle.resources = tuple(event.resources)
                    if handle.instance_id not in {"", event.instance_id}:
                        handle.instance_id = ""
                    if handle.is_new_to(event):
                        self._strangers.set()
                    await self._on_told(handle, event)
                    complaint = ""
                    self._note_change()
            except aio.AioRpcError as error:
                handle.last_error = f"{error.code().name}: {error.details()}"
            except NumalignError as error:
                # Such as a full disk. The next watch begins with how things are then.
                if str(error) != complaint:
                    complaint = str(error)
                    _log.warning("a provider is not heard", provider=handle.name, error=complaint)
            finally:
                # One that nobody reads goes on by itself, and what comes is kept for ever.
                stream.cancel()
            await asyncio.sleep(RETRY_SECONDS)

    def _note_change(self) -> None:
        self._changes += 1
        self._changed.set()
        self._changed = asyncio.Event()


async def all_delivered(handles: Iterable[ProviderHandle]) -> None:
    """Wait until every provider has the last outcome, or cannot have it."""
    handles = tuple(handles)
    for handle in handles:
        handle.deliver_now()
    for handle in handles:
        await handle.delivered()


def overlap(a: str, b: str) -> bool:
    """Whether two served resources, either of which may end in `*`, have a name in common."""
    if a.endswith("*") and b.endswith("*"):
        return a[:-1].startswith(b[:-1]) or b[:-1].startswith(a[:-1])
    if a.endswith("*"):
        return b.startswith(a[:-1])
    if b.endswith("*"):
        return a.startswith(b[:-1])
    return a == b
