"""The demonstration from start to end, told as it happens."""

from __future__ import annotations

import secrets
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from numalign.cli.calls import channel_to
from numalign.cli.commands.status import NodeStatus, read_status
from numalign.cli.demo.processes import five_processes
from numalign.cli.demo.receiver import receiving
from numalign.cli.demo.spans import is_complete, trace_tree
from numalign.cli.demo.steps import STEPS, TRACED, Step, pod_of, remark_of, sample_text, surprises
from numalign.cli.endpoint import Endpoint
from numalign.cli.tables.admissions import admissions_table
from numalign.cli.tables.decision import decision_parts
from numalign.cli.tables.machine_map import machine_parts
from numalign.cli.tables.ownership import Books
from numalign.config.settings import Service
from numalign.machine.machine_file import read_machine_file
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub

if TYPE_CHECKING:
    from numalign.v1.admission_pb2_grpc import AdmissionAsyncStub

_CALL_SECONDS = 10.0
_TRACE_SECONDS = 5.0


async def tell(console: Console) -> list[str]:
    """Run the demonstration; everything that was not as it has to be.

    Raises Unavailable where a service does not start.
    """
    with TemporaryDirectory(prefix="numalign-") as name:
        directory = Path(name)
        for file in ("config.yaml", "machine.yaml"):
            text = files("numalign.cli.demo").joinpath(file).read_text(encoding="utf-8")
            (directory / file).write_text(text, encoding="utf-8")
        return await _tell(console, directory)


async def _tell(console: Console, directory: Path) -> list[str]:
    found: list[str] = []
    trace_id, root_id = secrets.token_hex(16), secrets.token_hex(8)
    async with receiving() as (receiver, endpoint):
        _heading(console, "Five services, five processes, five sockets")
        async with five_processes(directory, directory / "config.yaml", endpoint) as (
            processes,
            sockets,
        ):
            for service, process in processes.running.items():
                console.print(f"  {service.value:<10} process {process.pid}  {sockets[service]}")
            async with channel_to(Endpoint(sockets[Service.ADMISSION])) as channel:
                stub = AdmissionStub(channel)
                for step in STEPS:
                    parent = f"00-{trace_id}-{root_id}-01"
                    traced = (("traceparent", parent),) if step.sample == TRACED else ()
                    found += await _ask(console, stub, step, traced)
            status = await read_status(
                {s: Endpoint(path) for s, path in sockets.items()}, "", _CALL_SECONDS
            )
            found += status.problems
            _draw_status(console, status)
            await _draw_map(console, directory, sockets, status)
            _heading(console, f"The way of {TRACED} through the services")
            spans = await receiver.trace(trace_id, root_id, _TRACE_SECONDS)
            console.print(trace_tree("node agent", spans, root_id))
            if not is_complete(spans, root_id):
                found.append(f"the trace has holes: {len(spans)} spans arrived")
        _heading(console, "Stopping")
        for service, code in processes.exit_codes.items():
            console.print(f"  {service.value:<10} exit code {code}")
            if code:
                found.append(f"the {service.value} service ended with exit code {code}")
        found += [f"{path} is left behind" for path in sockets.values() if path.exists()]
    return found


async def _ask(
    console: Console,
    stub: AdmissionAsyncStub,
    step: Step,
    metadata: tuple[tuple[str, str], ...],
) -> list[str]:
    text = sample_text(step.sample)
    _heading(console, f"$ numalign admit {step.sample}{' --dry-run' if step.dry_run else ''}")
    console.print(Text(remark_of(text), style="dim"))
    pod = pod_of(text)
    request = ad.AdmitRequest(
        pod=pod,
        operation=pb.OPERATION_ADD,
        dry_run=step.dry_run,
        explain=pb.EXPLAIN_LEVEL_SUMMARY,
    )
    answer = await stub.Admit(request, timeout=_CALL_SECONDS, metadata=metadata)
    listed = await stub.ListAdmissions(ad.ListAdmissionsRequest(), timeout=_CALL_SECONDS)
    names = {record.pod_uid: record.name for record in listed.admissions}
    for part in decision_parts(pod.metadata.name, answer, names):
        console.print(part)
    return surprises(step, answer)


def _draw_status(console: Console, status: NodeStatus) -> None:
    _heading(console, "$ numalign status")
    if status.admissions is not None:
        console.print(admissions_table(status.admissions.admissions))
        console.print(f"shared CPUs {status.admissions.shared_cpus}")


async def _draw_map(
    console: Console, directory: Path, sockets: dict[Service, Path], status: NodeStatus
) -> None:
    _heading(console, "$ numalign machine")
    states = {}
    for service in (Service.CPU, Service.MEMORY, Service.DEVICE):
        async with channel_to(Endpoint(sockets[service])) as channel:
            states[service] = await HintProviderStub(channel).GetState(
                hp.GetStateRequest(), timeout=_CALL_SECONDS
            )
    listed = () if status.admissions is None else status.admissions.admissions
    books = Books(
        pods={record.pod_uid: record.name for record in listed},
        cpu=states[Service.CPU].cpu,
        memory=states[Service.MEMORY].memory,
        device=states[Service.DEVICE].device,
    )
    for part in machine_parts(read_machine_file(directory / "machine.yaml"), books):
        console.print(part)


def _heading(console: Console, text: str) -> None:
    console.print()
    console.rule(Text(text, style="bold"), align="left")
