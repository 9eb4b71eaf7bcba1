"""A driver whose devices come from real plugins: another process, sockets, registrations.

It takes the same documents as any driver. What they say of devices it has the plugins do, and
it waits after each change until the device service has heard of it, as the recorder did.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from grpc import aio

from numalign.config.settings import Compatibility, Service
from numalign.model.settings import PluginPresence
from numalign.process.compatibility import strategies_of
from numalign.replay.driver import Driver
from numalign.replay.expected_devices import expected_devices
from numalign.replay.recordings import Json
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub

HEARD_SECONDS = 30.0
"""How long the device service may take to hear of a change."""

_LOOK_SECONDS = 0.002
_PREFIX = "rpc error: code = Unknown desc = "

Entries = Mapping[str, Json]


class PluginProcess:
    """The process of the plugins; used as a context, one for many scenarios."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "numalign.replay.plugin_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        # It ends when its standard input does; Popen closes that and waits.
        with self._process:
            pass

    async def do(self, command: Json) -> None:
        """Have something done and wait for it. Raises RuntimeError where it cannot be."""
        answer = await asyncio.to_thread(self._ask, command)
        if "error" in answer:
            raise RuntimeError(f"plugins: {answer['error']}")

    def _ask(self, command: Json) -> Json:
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("plugins: no pipes")
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("plugins: the process ended")
        answer: Json = json.loads(line)
        return answer


class RealPlugins:
    """A driver around another one; `directory` is for the plugins' sockets."""

    def __init__(
        self,
        driver: Driver,
        plugins: PluginProcess,
        directory: Path,
        compatibility: Compatibility,
    ) -> None:
        self._driver = driver
        self._plugins = plugins
        self._directory = directory
        self._listed = strategies_of(compatibility).plugin_host.listed
        self._entries: dict[str, Json] = {}
        self._nodes: tuple[int, ...] = ()

    @property
    def state_directory(self) -> Path:
        """Where the services keep their state."""
        return self._driver.state_directory

    async def open(self, document: Mapping[str, object]) -> None:
        """Start the services, then the plugins that are there. Raises as the driver does."""
        section, entries = _split(document)
        self._nodes = tuple(node["id"] for node in section["machine"]["numa_nodes"])
        section["devicePlugins"] = {
            "mode": "host",
            "directory": str(self._directory),
            "pluginsRegistry": "",
        }
        self._entries = {}
        await self._driver.open({**document, "numalign": section})
        await self._change(entries)

    async def reload(self, document: Mapping[str, object]) -> None:
        """Have the plugins do what is different in the document."""
        await self._change(_split(document)[1])

    def channel(self, service: Service) -> aio.Channel:
        """A channel to one of the services."""
        return self._driver.channel(service)

    async def close(self) -> None:
        """Stop the services, then end the plugins."""
        await self._driver.close()
        await self._plugins.do({"op": "end-all"})

    async def _change(self, entries: Entries) -> None:
        for resource, entry in entries.items():
            before = self._entries.get(resource)
            if before == entry:
                continue
            if not _is_there(entry):
                if before is not None and _is_there(before):
                    await self._plugins.do({"op": "end", "resource": resource})
                    await self._until(resource, None)
                continue
            if before is not None and _is_there(before):
                await self._plugins.do({"op": "list", "entry": entry})
            else:
                await self._plugins.do(
                    {"op": "register", "entry": entry, "directory": str(self._directory)}
                )
            await self._until(resource, entry)
        self._entries = dict(entries)

    async def _until(self, resource: str, entry: Json | None) -> None:
        """Wait until the books show the plugin with its list, or (None) show it gone."""
        stub = HintProviderStub(self.channel(Service.DEVICE))
        expected = None if entry is None else expected_devices(entry, self._listed, self._nodes)
        async with asyncio.timeout(HEARD_SECONDS):
            while True:
                state = await stub.GetState(hp.GetStateRequest())
                shown = next((r for r in state.device.resources if r.resource == resource), None)
                if _shows(shown, expected):
                    return
                await asyncio.sleep(_LOOK_SECONDS)


def without_rpc_words(results: Json) -> Json:
    """Results without what gRPC puts before a plugin's own error, which recordings lack."""
    read: Json = json.loads(json.dumps(results).replace(_PREFIX, ""))
    return read


def _split(document: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, Json]]:
    section: dict[str, Any] = dict(document["numalign"])  # type: ignore[call-overload]  # a mapping, as in every document
    entries = {entry["resource"]: entry for entry in section.pop("devices")}
    return section, entries


def _is_there(entry: Json) -> bool:
    return bool(entry["plugin"] == PluginPresence.REGISTERED.value)


def _shows(shown: hp.DeviceResource | None, expected: list[hp.Device] | None) -> bool:
    if expected is None:
        return shown is not None and not shown.connected and shown.allocatable == 0
    return (
        shown is not None
        and shown.connected
        and list(shown.devices) == expected
        and shown.allocatable == sum(device.healthy for device in expected)
    )
