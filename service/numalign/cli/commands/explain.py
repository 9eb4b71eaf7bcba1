"""`numalign explain`: how the last decision on a pod was reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from grpc import StatusCode
from grpc.aio import AioRpcError

from numalign.admission.journal.entry import leave_out_details
from numalign.cli.calls import ask_services
from numalign.cli.journal.calls import get_decision
from numalign.cli.options import current_reach, examples, node_options, output_option, reach_options
from numalign.cli.output import emit, plain
from numalign.config.settings import Service
from numalign.errors import NotFound
from numalign.v1 import decisions_pb2 as dc

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command(
    epilog=examples(
        "numalign explain default/analytics",
        "numalign explain analytics --full",
        "numalign explain --number 12 -o json",
    )
)
@click.argument("pod", default="", metavar="[POD]")
@click.option(
    "--number", type=click.IntRange(min=1), help="A decision by its number in the history."
)
@click.option("--full", is_flag=True, help="Show every merge of hints and every call, too.")
@node_options
@reach_options
@output_option
def explain(pod: str, number: int | None, full: bool) -> None:
    """Explain the last decision on a pod: what it got or what stood in its way, and why.

    POD is a name, `<namespace>/<name>`, or a UID. The decision is taken from the journal of the
    Admission service, where pods that were refused are found, too.
    """
    if bool(pod) == (number is not None):
        raise click.UsageError("name either a pod or, by --number, a decision")
    request = dc.GetDecisionRequest(number=number) if number else dc.GetDecisionRequest(pod=pod)
    seconds = current_reach().timeout
    try:
        found, names = ask_services(
            lambda services: get_decision(services[Service.ADMISSION], request, seconds),
            Service.ADMISSION,
        )
    except AioRpcError as error:
        if error.code() is not StatusCode.NOT_FOUND:
            raise
        raise NotFound(f"{error.details()}; `numalign history` lists what there is") from error

    def draw() -> Iterator[RenderableType]:
        from numalign.cli.tables.journal import decision_record_parts  # noqa: PLC0415 - for people

        if not full:
            leave_out_details(found.explanation)
        yield from decision_record_parts(found, names)

    emit(plain(found), draw)
