"""A message bus of one's own with a stand-in for systemd-logind on it."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from dbus_fast import PropertyAccess
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_method, dbus_property, dbus_signal

_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


class Daemon:
    """A dbus-daemon on a socket in `directory`, from `start` to `stop`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.address = f"unix:path={directory / 'bus'}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        binary = shutil.which("dbus-daemon")
        if binary is None:
            pytest.skip("dbus-daemon is not installed (Debian package dbus)")
        config = self._directory / "bus.conf"
        config.write_text(_CONFIG.format(socket=self._directory / "bus"), encoding="utf-8")
        self._process = subprocess.Popen(
            [binary, f"--config-file={config}", "--nofork", "--print-address=1"],
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
        (self._directory / "bus").unlink(missing_ok=True)


class Manager(ServiceInterface):
    """The part of org.freedesktop.login1.Manager that a shutdown needs."""

    def __init__(self, longest_delay: float) -> None:
        super().__init__("org.freedesktop.login1.Manager")
        self._longest_delay = longest_delay
        self.preparing = False
        self.inhibitors: list[tuple[str, str, str, str]] = []
        self._pipes: list[int] = []
        self._given: list[int] = []

    @dbus_method()
    def Inhibit(self, what: "s", who: "s", why: "s", mode: "s") -> "h":  # type: ignore[name-defined]  # noqa: F821, N802, UP037
        self.inhibitors.append((what, who, why, mode))
        kept, given = os.pipe()
        self._pipes.append(kept)
        self._given.append(given)
        return given

    @dbus_signal()
    def PrepareForShutdown(self, start) -> "b":  # type: ignore[no-untyped-def, name-defined]  # noqa: F821, N802, UP037, ANN001
        self.preparing = start
        return start

    @dbus_property(access=PropertyAccess.READ)
    def PreparingForShutdown(self) -> "b":  # type: ignore[name-defined]  # noqa: F821, N802, UP037
        return self.preparing

    @dbus_property(access=PropertyAccess.READ)
    def InhibitDelayMaxUSec(self) -> "t":  # type: ignore[name-defined]  # noqa: F821, N802, UP037
        return int(self._longest_delay * 1e6)

    def is_held(self, number: int) -> bool:
        """Whether the lock that was given as the `number`th is still held."""
        given, self._given[number] = self._given[number], -1
        if given >= 0:
            os.close(given)
        readable, _, _ = select.select([self._pipes[number]], [], [], 0)
        return not readable

    def close(self) -> None:
        for descriptor in (*self._pipes, *(given for given in self._given if given >= 0)):
            os.close(descriptor)


@asynccontextmanager
async def logind(daemon: Daemon, longest_delay: float = 60.0) -> AsyncIterator[Manager]:
    """The stand-in on the bus."""
    bus = await MessageBus(bus_address=daemon.address, negotiate_unix_fd=True).connect()
    manager = Manager(longest_delay)
    bus.export("/org/freedesktop/login1", manager)
    await bus.request_name("org.freedesktop.login1")
    try:
        yield manager
    finally:
        bus.disconnect()
        manager.close()
