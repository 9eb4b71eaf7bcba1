"""`numalign admit`: ask about the pods of manifests, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from grpc import StatusCode
from grpc.aio import AioRpcError

from numalign.cli.calls import answer, channel_to, run, sockets_of
from numalign.cli.failure import describe_status, say
from numalign.cli.manifests import read_pods
from numalign.cli.options import current_reach, examples, output_option, reach_options
from numalign.cli.output import emit, plain
from numalign.cli.verdicts import Exit, exit_of, worst
from numalign.config.settings import Service
from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub

if TYPE_CHECKING:
    from rich.console import RenderableType

    from numalign.v1.admission_pb2_grpc import AdmissionAsyncStub

LEVELS: Mapping[str, pb.ExplainLevel.ValueType] = {
    "none": pb.EXPLAIN_LEVEL_NONE,
    "summary": pb.EXPLAIN_LEVEL_SUMMARY,
    "full": pb.EXPLAIN_LEVEL_FULL,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one pod: a decision, or the lines that say why there is none."""

    pod: core_pb2.Pod
    decision: ad.AdmitResponse | None
    failure: tuple[str, ...] = ()

    @property
    def code(self) -> Exit:
        """What it means for the exit code."""
        return Exit.ERROR if self.decision is None else exit_of(self.decision.verdict)


@click.command(
    epilog=examples(
        "numalign admit pod.yaml",
        "numalign admit pod.yaml --dry-run --explain full",
        "numalign admit pod.yaml --resize",
        "kubectl get pod web -o json | numalign admit - -o json",
    )
)
@click.argument("manifests", nargs=-1, required=True, metavar="POD.yaml...")
@click.option("--dry-run", is_flag=True, help="Only say what would be decided; keep nothing.")
@click.option(
    "--resize",
    is_flag=True,
    help="The pods are admitted, and their CPU or memory is to become what they ask for.",
)
@click.option(
    "--explain",
    type=click.Choice(list(LEVELS)),
    default="summary",
    show_default=True,
    help="How much to say about the way: nothing, a paragraph, or every merge and call.",
)
@click.option("--owner", default="", metavar="NAME", help="The domain that the pods belong to.")
@reach_options
@output_option
def admit(
    manifests: tuple[str, ...], dry_run: bool, resize: bool, explain: str, owner: str
) -> None:
    """Ask whether pods may start, and what each container gets.

    A manifest may hold several documents; its pods are admitted in order. Deployments,
    StatefulSets, DaemonSets, ReplicaSets, Jobs and CronJobs count as one pod each. `-` is
    standard input.

    Exit codes: 0 admitted, 3 rejected, 4 not yet, 1 error; for several pods the worst.
    """
    pods, ignored = read_pods(manifests)
    say(ignored)
    reach = current_reach()
    socket = sockets_of(reach)[Service.ADMISSION]
    requests = [
        ad.AdmitRequest(
            pod=pod,
            operation=pb.OPERATION_RESIZE if resize else pb.OPERATION_ADD,
            owner=owner,
            dry_run=dry_run,
            explain=LEVELS[explain],
        )
        for pod in pods
    ]

    async def ask() -> tuple[list[Outcome], dict[str, str]]:
        async with channel_to(socket) as channel:
            stub = AdmissionStub(channel)
            outcomes = []
            for request in requests:
                call = stub.Admit(request, timeout=reach.timeout)
                try:
                    decision = await answer(Service.ADMISSION, socket, call)
                    outcomes.append(Outcome(request.pod, decision))
                except AioRpcError as error:
                    outcomes.append(Outcome(request.pod, None, describe_status(error)))
                    if error.code() is StatusCode.UNAVAILABLE:
                        break
            return outcomes, await _names(stub, outcomes, reach.timeout)

    outcomes, names = run(ask())
    emit({"pods": [document_of(outcome) for outcome in outcomes]}, lambda: _draw(outcomes, names))
    for outcome in outcomes:
        say(f"{name_of(outcome.pod)}: {line}" for line in outcome.failure)
    if len(outcomes) < len(requests):
        say([f"{len(requests) - len(outcomes)} more pods were not asked about"])
    click.get_current_context().exit(worst(outcome.code for outcome in outcomes))


def name_of(pod: core_pb2.Pod) -> str:
    """What people call the pod."""
    return f"{pod.metadata.namespace or 'default'}/{pod.metadata.name}"


def document_of(outcome: Outcome) -> dict[str, Any]:
    """The outcome as plain data: the pod, and `decision` or `error`."""
    metadata = outcome.pod.metadata
    document: dict[str, Any] = {
        "pod": {"uid": metadata.uid, "namespace": metadata.namespace, "name": metadata.name}
    }
    if outcome.decision is None:
        document["error"] = list(outcome.failure)
    else:
        document["decision"] = plain(outcome.decision)
    return document


async def _names(
    stub: AdmissionAsyncStub, outcomes: list[Outcome], seconds: float
) -> dict[str, str]:
    """Names of the pods that the explanations mention by uid, asked for only if there are any."""
    if not any(o.decision is not None and o.decision.explanation.obstacles for o in outcomes):
        return {}
    listed = await stub.ListAdmissions(ad.ListAdmissionsRequest(), timeout=seconds)
    return {record.pod_uid: f"{record.namespace}/{record.name}" for record in listed.admissions}


def _draw(outcomes: list[Outcome], names: dict[str, str]) -> Iterator[RenderableType]:
    from numalign.cli.tables.decision import decision_parts  # noqa: PLC0415 - only for people

    for outcome in outcomes:
        if outcome.decision is not None:
            yield from decision_parts(name_of(outcome.pod), outcome.decision, names)
