"""Runs the plugin: serve, register, and begin again whenever the kubelet has restarted."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from pathlib import Path

from grpc import aio

from examples.device_plugin.registering import (
    REGISTRY,
    RegistrationFailed,
    identity,
    register,
    remove,
)
from examples.device_plugin.servicer import FilePlugin, WatchedRegistration
from numalign.kube.deviceplugin.v1beta1.api_pb2_grpc import add_DevicePluginServicer_to_server
from numalign.kube.pluginregistration.v1.api_pb2_grpc import add_RegistrationServicer_to_server

_RETRY_SECONDS = 0.5

_log = logging.getLogger("device_plugin")


def main() -> None:
    """Run until a signal."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    asyncio.run(_run(_arguments()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.device_plugin",
        description="A device plugin whose devices are files in a directory.",
    )
    parser.add_argument("--resource", default="example.com/file", help="resource to serve")
    parser.add_argument("--devices", type=Path, required=True, help="directory of the files")
    parser.add_argument(
        "--sockets",
        type=Path,
        default=Path("/var/lib/kubelet/device-plugins"),
        help="directory of the plugin's own socket, and of the kubelet's unless --watched",
    )
    parser.add_argument("--name", default="file-plugin.sock", help="name of the plugin's socket")
    parser.add_argument(
        "--watched", action="store_true", help="be found by the plugin watcher in --sockets"
    )
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between two looks")
    parser.add_argument("--pre-start", action="store_true", help="ask for PreStartContainer")
    parser.add_argument("--journal", type=Path, help="file that gets a line for every call")
    return parser.parse_args()


async def _run(arguments: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    while not stopping.is_set():
        await _serve_once(arguments, stopping)


async def _serve_once(arguments: argparse.Namespace, stopping: asyncio.Event) -> None:
    """Serve on a new socket until it is removed, the kubelet is another, or a signal comes."""
    socket: Path = arguments.sockets / arguments.name
    remove(socket)
    server = aio.server()
    plugin = FilePlugin(
        arguments.resource,
        arguments.devices,
        interval=arguments.interval,
        pre_start=arguments.pre_start,
        journal=arguments.journal,
    )
    add_DevicePluginServicer_to_server(plugin, server)
    add_RegistrationServicer_to_server(WatchedRegistration(arguments.resource), server)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    own = identity(socket)
    registry = arguments.sockets / REGISTRY
    known = None
    while not stopping.is_set() and identity(socket) == own:
        kubelet = identity(registry)
        if not arguments.watched and kubelet not in {None, known}:
            try:
                await register(arguments.sockets, socket, arguments.resource)
            except RegistrationFailed as error:
                _log.error("not registered: %s", error)
            else:
                known = kubelet
                _log.info("registered")
        await _pause(stopping)
    await server.stop(0)


async def _pause(stopping: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(_RETRY_SECONDS):
            await stopping.wait()
    except TimeoutError:
        return


main()
