"""`numalign metrics`: the metrics that the services publish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from numalign.cli.options import examples, output_option
from numalign.cli.output import emit
from numalign.config.settings import Service
from numalign.process.metrics import services_of
from numalign.telemetry.metrics import MetricSpec
from numalign.telemetry.own_metrics import all_metrics

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.group(epilog=examples("numalign metrics list"))
def metrics() -> None:
    """Say what there is to measure."""


@metrics.command(
    "list", epilog=examples("numalign metrics list --service cpu", "numalign metrics list -o json")
)
@click.option(
    "--service",
    type=click.Choice([service.value for service in Service]),
    help="Only what this service publishes.",
)
@output_option
def list_(service: str | None) -> None:
    """List every metric: name, type, labels, services that publish it, and what it says.

    Needs no running services. With -o json also the upper bounds of histograms' buckets.
    """
    specs = [
        spec for spec in all_metrics() if service is None or Service(service) in services_of(spec)
    ]
    emit({"metrics": [_document(spec) for spec in specs]}, lambda: _draw(specs))


def _document(spec: MetricSpec) -> dict[str, object]:
    return {
        "name": spec.name,
        "type": spec.kind.value,
        "labels": list(spec.labels),
        "services": [service.value for service in services_of(spec)],
        "help": spec.help,
        **({"buckets": list(spec.buckets)} if spec.buckets else {}),
    }


def _draw(specs: list[MetricSpec]) -> Iterator[RenderableType]:
    from rich.table import Table  # noqa: PLC0415 - large, and only for people

    table = Table("metric", "type", "labels", "service", "what it says", box=None)
    for spec in specs:
        services = ", ".join(service.value for service in services_of(spec))
        table.add_row(spec.name, spec.kind.value, ", ".join(spec.labels), services, spec.help)
    table.columns[0].no_wrap = True
    yield table
