"""`numalign release`: give back what pods hold."""

from __future__ import annotations

from pathlib import Path

import click
from grpc import StatusCode
from grpc.aio import AioRpcError
from rich.text import Text

from numalign.cli.calls import answer, channel_to, run, sockets_of
from numalign.cli.failure import describe_status, say
from numalign.cli.manifests import STDIN, read_pods
from numalign.cli.options import current_reach, examples, output_option, reach_options
from numalign.cli.output import emit
from numalign.cli.verdicts import Exit
from numalign.config.settings import Service
from numalign.v1 import admission_pb2 as ad
from numalign.v1.admission_pb2_grpc import AdmissionStub

_MANIFESTS = (".yaml", ".yml", ".json")


@click.command(
    epilog=examples(
        "numalign release 6f1c2f0e-3c53-4a38-9a0b-1f1f4b0d7c11", "numalign release pod.yaml"
    )
)
@click.argument("pods", nargs=-1, required=True, metavar="POD_UID|POD.yaml...")
@reach_options
@output_option
def release(pods: tuple[str, ...]) -> None:
    """Give back everything that pods hold.

    A pod is named by its uid, or by the manifest that it was admitted with.
    """
    uids = [uid for name in pods for uid in _uids(name)]
    reach = current_reach()
    socket = sockets_of(reach)[Service.ADMISSION]

    async def ask() -> tuple[list[tuple[str, int]], list[str]]:
        released: list[tuple[str, int]] = []
        failures: list[str] = []
        async with channel_to(socket) as channel:
            stub = AdmissionStub(channel)
            for uid in uids:
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


def _uids(name: str) -> list[str]:
    if name == STDIN or name.endswith(_MANIFESTS) or Path(name).is_file():
        return [pod.metadata.uid for pod in read_pods((name,))[0]]
    return [name]
