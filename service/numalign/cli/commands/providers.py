"""`numalign providers`: the hint providers, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Mapping

import click

from numalign.cli.calls import answer, ask_services, channel_to
from numalign.cli.endpoint import Endpoint
from numalign.cli.options import current_reach, examples, node_options, output_option, reach_options
from numalign.cli.output import emit, plain
from numalign.cli.tables.services import providers_table
from numalign.config.settings import Service
from numalign.v1 import topology_pb2 as tm
from numalign.v1.topology_pb2_grpc import TopologyManagerStub


@click.command(
    epilog=examples(
        "numalign providers", "numalign providers -o json", "numalign providers --forget licences"
    )
)
@node_options
@click.option(
    "--forget",
    metavar="NAME",
    help="Have a provider asked no more that has registered and does not come back.",
)
@reach_options
@output_option
def providers(forget: str | None) -> None:
    """List the hint providers in the order in which the Topology Manager asks them."""
    seconds = current_reach().timeout

    async def ask(services: Mapping[Service, Endpoint]) -> tm.ListHintProvidersResponse:
        topology = services[Service.TOPOLOGY]
        async with channel_to(topology) as channel:
            stub = TopologyManagerStub(channel)
            if forget is not None:
                forgotten = stub.DeregisterHintProvider(
                    tm.DeregisterHintProviderRequest(name=forget), timeout=seconds
                )
                await answer(Service.TOPOLOGY, topology, forgotten)
            call = stub.ListHintProviders(tm.ListHintProvidersRequest(), timeout=seconds)
            return await answer(Service.TOPOLOGY, topology, call)

    listed = ask_services(ask, Service.TOPOLOGY)
    emit(plain(listed), lambda: [providers_table(listed.providers)])
