"""`numalign status`: who is admitted, and how services and providers stand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from grpc import StatusCode
from grpc.aio import AioRpcError
from rich.text import Text

from numalign.cli.calls import Unreachable, answer, ask_services, channel_to
from numalign.cli.endpoint import Endpoint
from numalign.cli.failure import describe_status, say
from numalign.cli.options import current_reach, examples, node_options, output_option, reach_options
from numalign.cli.output import emit, plain
from numalign.cli.snapshot.live import live_node
from numalign.cli.tables.admissions import admissions
from numalign.cli.tables.node_resources import resources_tables
from numalign.cli.tables.services import ServiceState, providers_table, services_table
from numalign.cli.verdicts import Exit
from numalign.config.settings import Service
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import control_pb2 as ct
from numalign.v1 import topology_pb2 as tm
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.control_pb2_grpc import ControlStub
from numalign.v1.node_resources_pb2 import NodeResources
from numalign.v1.topology_pb2_grpc import TopologyManagerStub

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """Everything that was asked; `problems` say what was not answered."""

    services: tuple[ServiceState, ...]
    admissions: ad.ListAdmissionsResponse | None
    providers: tm.ListHintProvidersResponse | None
    problems: tuple[str, ...]


@click.command(
    epilog=examples(
        "numalign status",
        "numalign status --resources",
        "numalign status --socket /run/numalign/admission.sock -o yaml",
    )
)
@click.option("--owner", default="", metavar="NAME", help="Only pods of this owner.")
@click.option("--resources", is_flag=True, help="Show what each NUMA node has free instead.")
@node_options
@reach_options
@output_option
def status(owner: str, resources: bool) -> None:
    """Show who is admitted with what, and how services and hint providers stand.

    With --resources, what each NUMA node has, what of it is free, and the most that one
    container could get from that node alone. While a provider is down the others are shown, and
    who is missing is named.

    Exit codes: 0 if everything answered, 1 if not.
    """
    seconds = current_reach().timeout
    if resources:
        picture, problems = _resources(seconds)
        emit(plain(picture), lambda: resources_tables(picture))
        say(problems)
        if problems:
            click.get_current_context().exit(Exit.ERROR)
        return
    found = ask_services(lambda services: read_status(services, owner, seconds))
    emit(document_of(found), lambda: _draw(found))
    say(found.problems)
    if found.problems:
        click.get_current_context().exit(Exit.ERROR)


async def read_status(
    sockets: Mapping[Service, Endpoint], owner: str, seconds: float
) -> NodeStatus:
    """Ask every service at once; those that are down do not keep the others from answering."""
    (admissions, providers), services = await asyncio.gather(
        asyncio.gather(
            _admissions(sockets[Service.ADMISSION], owner, seconds),
            _providers(sockets[Service.TOPOLOGY], seconds),
        ),
        asyncio.gather(
            *(_service(service, socket, seconds) for service, socket in sockets.items())
        ),
    )
    problems = [
        f"{service.value} service at {sockets[service]}: {why}"
        for service, why in (
            (Service.ADMISSION, admissions),
            (Service.TOPOLOGY, providers),
            *((state.service, state.why_not) for state in services),
        )
        if isinstance(why, str) and why
    ]
    return NodeStatus(
        services=tuple(services),
        admissions=None if isinstance(admissions, str) else admissions,
        providers=None if isinstance(providers, str) else providers,
        problems=tuple(dict.fromkeys(problems)),
    )


def _resources(seconds: float) -> tuple[NodeResources, list[str]]:
    """What the node has; while a provider is down, what the others say, and who is missing."""
    try:
        picture = ask_services(
            lambda services: read_resources(services[Service.ADMISSION], seconds), Service.ADMISSION
        )
    except AioRpcError as error:
        # Whoever decides by the picture is given none; somebody who looks is shown the rest.
        if error.code() is not StatusCode.UNAVAILABLE:
            raise
        node, problems = live_node()
        return node.resources, problems
    return picture, []


async def read_resources(socket: Endpoint, seconds: float) -> NodeResources:
    """What the node has. Raises AioRpcError, or Unreachable."""
    async with channel_to(socket) as channel:
        call = AdmissionStub(channel).GetNodeResources(
            ad.GetNodeResourcesRequest(), timeout=seconds
        )
        return (await answer(Service.ADMISSION, socket, call)).resources


def document_of(found: NodeStatus) -> dict[str, object]:
    """The status as plain data; null stands for what was not answered."""
    return {
        "admissions": None if found.admissions is None else plain(found.admissions),
        "providers": None if found.providers is None else plain(found.providers)["providers"],
        "services": [
            {
                "service": state.service.value,
                "socket": state.socket,
                "status": None if state.status is None else plain(state.status),
                "error": state.why_not,
            }
            for state in found.services
        ],
    }


async def _admissions(
    socket: Endpoint,
    owner: str,
    seconds: float,
) -> ad.ListAdmissionsResponse | str:
    async with channel_to(socket) as channel:
        request = ad.ListAdmissionsRequest(owner=owner)
        call = AdmissionStub(channel).ListAdmissions(request, timeout=seconds)
        try:
            return await answer(Service.ADMISSION, socket, call)
        except (AioRpcError, Unreachable) as error:
            return _why(error)


async def _providers(
    socket: Endpoint,
    seconds: float,
) -> tm.ListHintProvidersResponse | str:
    async with channel_to(socket) as channel:
        request = tm.ListHintProvidersRequest()
        call = TopologyManagerStub(channel).ListHintProviders(request, timeout=seconds)
        try:
            return await answer(Service.TOPOLOGY, socket, call)
        except (AioRpcError, Unreachable) as error:
            return _why(error)


async def _service(
    service: Service,
    socket: Endpoint,
    seconds: float,
) -> ServiceState:
    async with channel_to(socket) as channel:
        call = ControlStub(channel).GetStatus(ct.GetStatusRequest(), timeout=seconds)
        try:
            return ServiceState(service, socket.socket, await answer(service, socket, call))
        except (AioRpcError, Unreachable) as error:
            return ServiceState(service, socket.socket, None, _why(error))


def _why(error: AioRpcError | Unreachable) -> str:
    return error.reason if isinstance(error, Unreachable) else "; ".join(describe_status(error))


def _health(listed: ad.ListAdmissionsResponse) -> Iterator[Text]:
    """A line for each device that is held and not healthy."""
    names = {record.pod_uid: f"{record.namespace}/{record.name}" for record in listed.admissions}
    for device in listed.unhealthy_devices:
        where = f"{names[device.pod_uid]} container {device.container}"
        yield Text(f"{device.health}: {where}: {device.resource} {device.id}", style="red")


def _draw(found: NodeStatus) -> Iterator[RenderableType]:
    if found.admissions is not None:
        listed = found.admissions
        if listed.admissions:
            yield admissions(listed.admissions)
            for record in listed.admissions:
                for problem in record.problems:
                    sentence = f"{record.namespace}/{record.name}: {problem}"
                    yield Text(f"problem: {sentence}", style="red")
        else:
            yield Text("no pods are admitted")
        yield from _health(listed)
        yield Text(f"\nshared CPUs {listed.shared_cpus or '-'}   revision {listed.revision}\n")
    yield services_table(found.services)
    switches = (switch for s in found.services if s.status for switch in s.status.placement)
    for switch in dict.fromkeys(switches):
        yield Text(f"beyond a kubelet's placement: {switch}")
    reports = {
        report: None for state in found.services if state.status for report in state.status.reports
    }
    for report in reports:
        yield Text(f"note: {report}", style="yellow")
    if found.providers is not None:
        yield Text()
        yield providers_table(found.providers.providers)
