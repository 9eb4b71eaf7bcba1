"""Runs the driver: serves claims on one socket and registration on another, until a signal."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
from pathlib import Path

from grpc import aio
from prepared_claims import PreparedClaims
from servicer import FileDriver, FileHealth, FileRegistration

from numalign.kube.dra.health.v1alpha1.api_pb2_grpc import add_DRAResourceHealthServicer_to_server
from numalign.kube.dra.v1 import api_pb2 as v1
from numalign.kube.dra.v1 import api_pb2_grpc as v1_grpc
from numalign.kube.dra.v1beta1 import api_pb2 as v1beta1
from numalign.kube.dra.v1beta1 import api_pb2_grpc as v1beta1_grpc
from numalign.kube.pluginregistration.v1.api_pb2_grpc import add_RegistrationServicer_to_server

_log = logging.getLogger("dra_driver")


def main() -> None:
    """Run until a signal."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    asyncio.run(_run(_arguments()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A DRA driver whose devices are files.")
    parser.add_argument("--name", default="files.example.com", help="name of the driver")
    parser.add_argument("--devices", type=Path, required=True, help="directory of the devices")
    parser.add_argument("--claims", type=Path, required=True, help="directory of the claims")
    parser.add_argument("--cdi", type=Path, default=Path("/var/run/cdi"), help="CDI directory")
    parser.add_argument("--plugin", type=Path, required=True, help="directory of its own files")
    parser.add_argument(
        "--registry",
        type=Path,
        default=Path("/var/lib/kubelet/plugins_registry"),
        help="directory in which drivers are looked for",
    )
    parser.add_argument("--instance", default="", help="told apart by this when two run at once")
    parser.add_argument("--version", choices=("v1", "v1beta1"), default="v1")
    parser.add_argument("--health", action="store_true", help="tell the health of devices")
    parser.add_argument("--journal", type=Path, help="file that gets a line for what is done")
    return parser.parse_args()


async def _run(arguments: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)

    def note(line: str) -> None:
        _log.info("%s", line)
        if arguments.journal is not None:
            with arguments.journal.open("a") as journal:
                journal.write(f"{line}\n")

    suffix = f"-{arguments.instance}" if arguments.instance else ""
    claims = PreparedClaims(
        arguments.name,
        arguments.devices,
        arguments.claims,
        arguments.plugin / "prepared",
        arguments.cdi,
    )
    endpoint = arguments.plugin / f"dra{suffix}.sock"
    versions = [f"{arguments.version}.DRAPlugin"]
    plugin = aio.server()
    if arguments.version == "v1":
        v1_grpc.add_DRAPluginServicer_to_server(FileDriver(v1, claims, note), plugin)
    else:
        v1beta1_grpc.add_DRAPluginServicer_to_server(FileDriver(v1beta1, claims, note), plugin)
    if arguments.health:
        versions.append("v1alpha1.DRAResourceHealth")
        add_DRAResourceHealthServicer_to_server(FileHealth(claims), plugin)
    registration = aio.server()
    add_RegistrationServicer_to_server(
        FileRegistration(arguments.name, endpoint, versions, note), registration
    )
    # The driver has to answer before it is found.
    for server, socket in (
        (plugin, endpoint),
        (registration, arguments.registry / f"{arguments.name}{suffix}-reg.sock"),
    ):
        socket.unlink(missing_ok=True)
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
    await stopping.wait()
    await registration.stop(0)
    await plugin.stop(0)


main()
