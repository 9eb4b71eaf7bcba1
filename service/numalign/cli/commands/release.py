"""`numalign release`: give back what pods hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click
from grpc import StatusCode
from grpc.aio import AioRpcError
from rich.text import Text

from numalign.cli.calls import answer, channel_to, run, sockets_of
from numalign.cli.endpoint import Endpoint
from numalign.cli.failure import describe_status, say
from numalign.cli.manifests import STDIN, read_pods
from numalign.cli.options import current_reach, examples, output_option, reach_options
from numalign.cli.output import emit
from numalign.cli.verdicts import Exit
from numalign.config.settings import Service
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

_MANIFESTS = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A pod as the command line names it: by its uid, or by `<namespace>/<name>`."""

    uid: str = ""
    name: str = ""


@click.command(
    epilog=examples(
        "numalign release pod.yaml",
        "numalign release default/web",
        "numalign release 6f1c2f0e-3c53-4a38-9a0b-1f1f4b0d7c11",
    )
)
@click.argument("pods", nargs=-1, required=True, metavar="POD.yaml|NAMESPACE/NAME|POD_UID...")
@reach_options
@output_option
def release(pods: tuple[str, ...]) -> None:
    """Give back everything that pods hold.

    A pod is named by the manifest that it was admitted with, by `<namespace>/<name>`, or by its
    uid.
    """
    named = [one for text in pods for one in _named(text)]
    reach = current_reach()
    socket = sockets_of(reach)[Service.ADMISSION]

    async def ask() -> tuple[list[tuple[str, int]], list[str]]:
        released: list[tuple[str, int]] = []
        async with channel_to(socket) as channel:
            stub = ad_grpc.AdmissionStub(channel)
            found, failures = await _found(stub, socket, named, reach.timeout)
            for uid in found:
                call = stub.Release(ad.ReleaseRequest(pod_uid=uid), timeout=reach.timeout)
                try:
                    response = await answer(Service.ADMISSION, socket, call)
                except AioRpcError as error:
                    if error.code() is not StatusCode.NOT_FOUND:
                        raise
                    failures += describe_status(error)
                    continue
                released.append((uid, response.revision))
        return released, failures

    released, failures = run(ask())
    emit(
        {"released": [{"podUid": uid, "revision": str(number)} for uid, number in released]},
        lambda: [Text(f"{uid} released, revision {number}") for uid, number in released],
    )
    say(failures)
    if failures:
        click.get_current_context().exit(Exit.ERROR)


async def _found(
    stub: ad_grpc.AdmissionAsyncStub, socket: Endpoint, named: Iterable[_Named], seconds: float
) -> tuple[list[str], list[str]]:
    """The uids of pods, and a line for each that is named and is not admitted."""
    uids: list[str] = []
    failures: list[str] = []
    admitted: list[pb.AdmissionRecord] | None = None
    for one in named:
        if one.uid:
            uids.append(one.uid)
            continue
        if admitted is None:
            call = stub.ListAdmissions(ad.ListAdmissionsRequest(), timeout=seconds)
            admitted = list((await answer(Service.ADMISSION, socket, call)).admissions)
        of_name = [pod.pod_uid for pod in admitted if f"{pod.namespace}/{pod.name}" == one.name]
        if len(of_name) == 1:
            uids += of_name
        elif of_name:
            failures.append(f"{one.name}: several pods have this name: {', '.join(of_name)}")
        else:
            failures.append(f"{one.name}: no pod of this name is admitted")
    return uids, failures


def _named(text: str) -> list[_Named]:
    if text == STDIN or text.endswith(_MANIFESTS) or Path(text).is_file():
        return [_Named(uid=pod.metadata.uid) for pod in read_pods((text,))[0]]
    return [_Named(name=text)] if "/" in text else [_Named(uid=text)]
