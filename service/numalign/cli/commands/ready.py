"""`numalign ready`: the probe of one service, for who can run a command and not call a socket.

A kubelet's own gRPC probes speak TCP; the services listen on Unix sockets.
"""

from __future__ import annotations

import click
from grpc_health.v1 import health_pb2, health_pb2_grpc

from numalign.cli.calls import answer, channel_to, run, sockets_of
from numalign.cli.options import current_reach, examples, output_option, reach_options
from numalign.cli.output import emit
from numalign.cli.verdicts import Exit
from numalign.config.health_names import HEALTH_NAMES
from numalign.config.settings import Service
from numalign.errors import ConfigError

_PROCESS = ""
"""The name under which health answers for the process as a whole."""


@click.command(
    epilog=examples(
        "numalign ready admission",
        "numalign ready cpu --live --config /etc/numalign/config.yaml --timeout 5",
    )
)
@click.argument("service", type=click.Choice([service.value for service in Service]))
@click.option("--live", is_flag=True, help="Ask only whether its process answers.")
@reach_options
@output_option
def ready(service: str, live: bool) -> None:
    """Say whether a service is ready, as a probe asks.

    Exit codes: 0 if it is, 1 if it is not or does not answer.
    """
    asked = Service(service)
    reach = current_reach()
    socket = sockets_of(reach).get(asked)
    if socket is None:
        raise ConfigError(f"{service}: this node has no such service")
    name = _PROCESS if live else HEALTH_NAMES[asked]

    async def check() -> health_pb2.HealthCheckResponse:
        async with channel_to(socket) as channel:
            call = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service=name), timeout=reach.timeout
            )
            return await answer(asked, socket, call)

    found = run(check())
    status = health_pb2.HealthCheckResponse.ServingStatus.Name(found.status)
    emit({"service": service, "status": status}, lambda: [f"{service} {status}"])
    if found.status != health_pb2.HealthCheckResponse.SERVING:
        click.get_current_context().exit(Exit.ERROR)
