"""`numalign metrics`: the metrics that the services and the agent publish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from numalign.cli.options import examples, output_option
from numalign.cli.output import emit
from numalign.cli.published import Published, published, publishers

if TYPE_CHECKING:
    from rich.console import RenderableType


class _Publisher(click.ParamType):  # type: ignore[type-arg] # older click has no arguments here
    """One of those who publish metrics, which are looked for only when one is named."""

    name = "service"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The name; fails as wrong usage."""
        known = publishers()
        if value not in known:
            self.fail(f"'{value}' is not one of {', '.join(known)}", param, ctx)
        return str(value)


@click.group(epilog=examples("numalign metrics list"))
def metrics() -> None:
    """Say what there is to measure."""


@metrics.command(
    "list", epilog=examples("numalign metrics list --service cpu", "numalign metrics list -o json")
)
@click.option(
    "--service",
    type=_Publisher(),
    metavar="NAME",
    help="Only what this service publishes, or agent, nri (its plugin) or node.",
)
@output_option
def list_(service: str | None) -> None:
    """List every metric: name, type, labels, who publishes it, and what it says.

    Needs no running services. With -o json also the upper bounds of histograms' buckets.
    """
    found = [one for one in published() if service is None or service in one.by]
    emit({"metrics": [_document(one) for one in found]}, lambda: _draw(found))


def _document(one: Published) -> dict[str, object]:
    return {
        "name": one.spec.name,
        "type": one.spec.kind.value,
        "labels": list(one.spec.labels),
        "services": list(one.by),
        "help": one.spec.help,
        **({"buckets": list(one.spec.buckets)} if one.spec.buckets else {}),
    }


def _draw(found: Iterable[Published]) -> Iterator[RenderableType]:
    from rich.padding import Padding  # noqa: PLC0415 - large, and only for people
    from rich.text import Text  # noqa: PLC0415 - as above

    for one in found:
        labels = f"{{{', '.join(one.spec.labels)}}}" if one.spec.labels else ""
        about = f"  {one.spec.kind.value} of {', '.join(one.by)}"
        yield Text.assemble((one.spec.name, "bold"), labels, about)
        yield Padding(Text(one.spec.help), (0, 0, 0, 4), expand=False)
