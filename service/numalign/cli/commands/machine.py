"""`numalign machine`: the NUMA map of a machine, with owners where the services answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from grpc.aio import AioRpcError

from numalign.cli.calls import Unreachable, answer, channel_to, run, sockets_of
from numalign.cli.endpoint import Endpoint
from numalign.cli.failure import say
from numalign.cli.options import (
    Reach,
    current_reach,
    environment,
    examples,
    output_option,
    reach_options,
)
from numalign.cli.output import emit, plain
from numalign.cli.tables.machine_map import machine_parts
from numalign.cli.tables.ownership import Books
from numalign.config.loader import load_settings
from numalign.config.machine_source import read_machine
from numalign.config.settings import MachineFile, MachineRoot, MachineSource, Service
from numalign.machine.schema import document_of_machine
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub


@click.command(
    epilog=examples(
        "numalign machine",
        "numalign machine --file machine.yaml",
        "numalign machine --config /etc/numalign/config.yaml -o json",
    )
)
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    help="Discover the machine from sys and proc below this directory.",
)
@click.option("--file", type=click.Path(path_type=Path), help="Take the machine from this file.")
@reach_options
@output_option
def machine(root: Path | None, file: Path | None) -> None:
    """Draw the NUMA map: nodes, sockets, cores, CPUs, memory, devices, and who owns them.

    The machine is the one of the configuration, else this one. Owners are drawn where the
    services answer; with --root or --file only if --socket or --config names them too.
    """
    reach = current_reach()
    found = read_machine(_source(root, file, reach))
    books = Books()
    if reach.stated or (root is None and file is None):
        books = run(_read_books(reach))
    say(found.warnings)
    document = {
        "machine": document_of_machine(found.machine),
        "isolatedCpus": str(found.isolated),
        "offlineCpus": str(found.offline),
        "pods": dict(books.pods),
        "cpu": None if books.cpu is None else plain(books.cpu),
        "memory": None if books.memory is None else plain(books.memory),
        "device": None if books.device is None else plain(books.device),
    }
    emit(document, lambda: machine_parts(found.machine, books))


def _source(root: Path | None, file: Path | None, reach: Reach) -> MachineSource:
    if root is not None and file is not None:
        raise click.UsageError("--root and --file exclude each other")
    if root is not None:
        return MachineRoot(root)
    if file is not None:
        return MachineFile(file)
    if reach.config is not None:
        return load_settings(reach.config, *environment()).machine
    return MachineRoot(Path("/"))


async def _read_books(reach: Reach) -> Books:
    """The books of every service that answers; a line says which do not."""
    sockets = sockets_of(reach)
    (cpu, memory, device), pods = await asyncio.gather(
        asyncio.gather(
            *(
                _state(service, sockets[service], reach.timeout)
                for service in (Service.CPU, Service.MEMORY, Service.DEVICE)
            )
        ),
        _pods(sockets[Service.ADMISSION], reach.timeout),
    )
    missing = [
        service.value
        for service, state in zip(
            (Service.CPU, Service.MEMORY, Service.DEVICE, Service.ADMISSION),
            (cpu, memory, device, pods),
            strict=True,
        )
        if state is None
    ]
    if missing:
        say([f"owners are drawn as far as known: no answer from {', '.join(missing)}"])
    return Books(
        pods=pods or {},
        cpu=None if cpu is None else cpu.cpu,
        memory=None if memory is None else memory.memory,
        device=None if device is None else device.device,
    )


async def _state(service: Service, socket: Endpoint, seconds: float) -> hp.GetStateResponse | None:
    async with channel_to(socket) as channel:
        call = HintProviderStub(channel).GetState(hp.GetStateRequest(), timeout=seconds)
        try:
            return await answer(service, socket, call)
        except (AioRpcError, Unreachable):
            return None  # reported by the caller, for all services in one line


async def _pods(socket: Endpoint, seconds: float) -> dict[str, str] | None:
    async with channel_to(socket) as channel:
        request = ad.ListAdmissionsRequest()
        call = AdmissionStub(channel).ListAdmissions(request, timeout=seconds)
        try:
            listed = await answer(Service.ADMISSION, socket, call)
        except (AioRpcError, Unreachable):
            return None  # as above
        return {record.pod_uid: f"{record.namespace}/{record.name}" for record in listed.admissions}
