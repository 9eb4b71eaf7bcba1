"""The servers of a process: a socket for each of its services, and what else is listened at.

Separate from `serve`, which runs them until a signal.
"""

from __future__ import annotations

from collections.abc import Sequence

from numalign.config.settings import Service, Settings
from numalign.process.control import ControlServicer, control_registration
from numalign.process.part import Part
from numalign.rpc.grpc_server import GrpcServer
from numalign.rpc.server import ServiceServer
from numalign.telemetry.spans import Tracer


def service_servers(
    parts: Sequence[Part], control: ControlServicer, settings: Settings, tracer: Tracer | None
) -> dict[Service, GrpcServer]:
    """The server of each part's service, on its Unix socket; not started yet."""
    return {
        part.service: ServiceServer(
            (part.registration, control_registration(control)),
            settings.endpoints[part.service],
            settings.sockets,
            tracer,
            settings.limits,
            call_streams=True,
        )
        for part in parts
    }


def other_servers(
    parts: Sequence[Part], settings: Settings, tracer: Tracer | None
) -> list[GrpcServer]:
    """What is listened at beside those: sockets for interfaces of others, and TCP.

    Over TCP there is Admission alone: who changes how a node is run does so on the node.
    """
    limits = settings.limits
    servers: list[GrpcServer] = [
        ServiceServer(own.registrations, own.path, settings.sockets, tracer, limits)
        for part in parts
        for own in part.sockets
    ]
    if settings.listen:
        from numalign.rpc.tls_server import TlsServer  # noqa: PLC0415 - memory, and seldom used

        servers += [
            TlsServer((part.registration,), listen, tracer, limits)
            for part in parts
            if part.service is Service.ADMISSION
            for listen in settings.listen
        ]
    return servers
