"""`numalign providers`: the hint providers, in the order in which they are asked."""

from __future__ import annotations

import click

from numalign.cli.calls import answer, channel_to, run, sockets_of
from numalign.cli.options import current_reach, examples, output_option, reach_options
from numalign.cli.output import emit, plain
from numalign.cli.tables.services import providers_table
from numalign.config.settings import Service
from numalign.v1 import topology_pb2 as tm
from numalign.v1.topology_pb2_grpc import TopologyManagerStub


@click.command(epilog=examples("numalign providers", "numalign providers -o json"))
@reach_options
@output_option
def providers() -> None:
    """List the hint providers in the order in which the Topology Manager asks them."""
    reach = current_reach()
    socket = sockets_of(reach)[Service.TOPOLOGY]

    async def ask() -> tm.ListHintProvidersResponse:
        async with channel_to(socket) as channel:
            call = TopologyManagerStub(channel).ListHintProviders(
                tm.ListHintProvidersRequest(), timeout=reach.timeout
            )
            return await answer(Service.TOPOLOGY, socket, call)

    listed = run(ask())
    emit(plain(listed), lambda: [providers_table(listed.providers)])
