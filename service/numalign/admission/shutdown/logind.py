"""systemd-logind on the system bus: PrepareForShutdown, and inhibitor locks with delay.

Separate from the watch, which it announces to. The library for D-Bus is an extra and is
loaded with this module only.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from dbus_fast import BusType, DBusFastError
from dbus_fast.aio import MessageBus
from dbus_fast.introspection import Node

from numalign.admission.shutdown.port import Announcer, AnnouncerGone

T = TypeVar("T")

_NAME = "org.freedesktop.login1"
_PATH = "/org/freedesktop/login1"
_MANAGER = "org.freedesktop.login1.Manager"
_INTERFACE = f"""
<node>
  <interface name="{_MANAGER}">
    <method name="Inhibit">
      <arg name="what" type="s" direction="in"/>
      <arg name="who" type="s" direction="in"/>
      <arg name="why" type="s" direction="in"/>
      <arg name="mode" type="s" direction="in"/>
      <arg name="pipe_fd" type="h" direction="out"/>
    </method>
    <signal name="PrepareForShutdown"><arg name="start" type="b"/></signal>
    <property name="PreparingForShutdown" type="b" access="read"/>
    <property name="InhibitDelayMaxUSec" type="t" access="read"/>
  </interface>
</node>
"""
_WHO, _WHY = "numalign", "admitted pods are to end first"
_ANSWER_SECONDS = 10.0


class LogindDelay:
    """An inhibitor lock: logind waits while somebody has its file open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Close it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class Logind:
    """The manager object of logind over one connection."""

    def __init__(self, manager: Any) -> None:  # noqa: ANN401 - made from the introspection
        self._manager = manager
        self._announced: asyncio.Queue[bool | None] = asyncio.Queue()
        manager.on_prepare_for_shutdown(self._announced.put_nowait)

    async def longest_delay(self) -> float:
        """Seconds of InhibitDelayMaxSec."""
        return int(await _answered(self._manager.get_inhibit_delay_max_u_sec())) / 1e6

    async def is_preparing(self) -> bool:
        """See Announcer."""
        return bool(await _answered(self._manager.get_preparing_for_shutdown()))

    async def delay(self) -> LogindDelay:
        """Take an inhibitor lock with mode `delay`."""
        lock = self._manager.call_inhibit("shutdown", _WHO, _WHY, "delay")
        return LogindDelay(int(await _answered(lock)))

    async def announcements(self) -> AsyncIterator[bool]:
        """See Announcer. Ends with AnnouncerGone when the bus is gone."""
        while True:
            announced = await self._announced.get()
            if announced is None:
                raise AnnouncerGone("the bus closed the connection")
            yield announced

    def gone(self) -> None:
        """No announcement will come any more."""
        self._announced.put_nowait(None)


@asynccontextmanager
async def open_logind(address: str | None) -> AsyncIterator[Announcer]:
    """Connect to logind on the bus at `address`; None: the system bus.

    Raises AnnouncerGone where the bus or logind cannot be reached.
    """
    try:
        bus = MessageBus(bus_address=address, bus_type=BusType.SYSTEM, negotiate_unix_fd=True)
        async with asyncio.timeout(_ANSWER_SECONDS):
            await bus.connect()
    except (DBusFastError, OSError, EOFError, TimeoutError) as error:
        raise AnnouncerGone(f"the bus cannot be reached: {_said(error)}") from error
    watching: asyncio.Task[None] | None = None
    try:
        proxy = bus.get_proxy_object(_NAME, _PATH, Node.parse(_INTERFACE))
        logind = Logind(proxy.get_interface(_MANAGER))
        watching = asyncio.get_running_loop().create_task(_until_gone(bus, logind))
        yield logind
    finally:
        bus.disconnect()
        if watching is not None:
            await watching


async def _until_gone(bus: MessageBus, logind: Logind) -> None:
    # It raises whatever ended the connection; that it ended is all that matters.
    ended = bus.wait_for_disconnect()  # type: ignore[no-untyped-call]
    await asyncio.gather(ended, return_exceptions=True)
    logind.gone()


async def _answered(call: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await call
    except (DBusFastError, OSError, EOFError, TimeoutError) as error:
        raise AnnouncerGone(f"logind does not answer: {_said(error)}") from error


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__
