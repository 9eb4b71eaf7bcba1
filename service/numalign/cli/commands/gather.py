"""`numalign gather`: a bundle for whoever is to find out what is wrong."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from grpc.aio import AioRpcError

from numalign.cli.calls import Unreachable, run
from numalign.cli.failure import describe, say
from numalign.cli.gather.bundle import directory_of, open_bundle, write_bundle
from numalign.cli.gather.elsewhere import gather_there
from numalign.cli.gather.machine_facts import machine_facts
from numalign.cli.gather.scrub import LEFT_OUT, scrubbed
from numalign.cli.options import current_reach, examples, node_options, reach_options
from numalign.cli.report.page import report_page
from numalign.cli.snapshot.document import document_of
from numalign.cli.snapshot.live import live_node
from numalign.cli.snapshot.values import NodeSnapshot
from numalign.cli.verdicts import Exit

_PAGE_SECONDS = 5
_MOST_LOG_BYTES = 8 << 20
_SHOWN_VARIABLES = ("NUMALIGN_", "OTEL_SERVICE_NAME", "OTEL_TRACES_", "OTEL_SDK_")

_README = """\
What is in this bundle of numalign {version}, taken at {taken}:

  problems.txt      what could not be had; empty if everything could
  snapshot.json     the node: configuration, machine, who has what, the last decisions;
                    `numalign simulate`, `top` and `report` take it by --snapshot
  report.html       the same as a page
  metrics/          pages of the services
  machine/          what the kernel says of NUMA nodes, CPUs and memory
  logs/             the ends of the files that were given by --log
  environment.txt   variables that say how numalign runs

Commands, arguments, environment and most annotations of pods are left out, and so are HTTP headers
of the configuration, and whatever in logs looks like a key, a token or a password. Names of pods,
namespaces and devices are in it.
"""


@click.command(
    epilog=examples(
        "numalign gather --to numalign.tar.gz",
        "numalign gather --to numalign.tar.gz --log /var/log/numalign.log",
    )
)
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Write the bundle to this file, a .tar.gz for its owner alone; - is standard output.",
)
@click.option(
    "--log",
    "logs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Put the end of this log file in, too; with --node, one of the pod.",
)
@node_options
@reach_options
def gather(to: Path, logs: tuple[Path, ...]) -> None:
    """Collect what support needs, with secrets left out.

    What cannot be had, as of services that are down, is named in the bundle and here.

    Exit codes: 0 if everything could be had, 1 if not; the bundle is written all the same.
    """
    reach = current_reach()
    if reach.remote is not None:
        code, said = run(gather_there(reach.remote, logs, reach.timeout, to))
        for line in said:
            click.echo(line, err=True)
        click.echo(f"{to}: {to.stat().st_size} bytes")
        click.get_current_context().exit(code)
    problems: list[str] = []
    files: dict[str, str] = {}
    now = int(time.time())
    taken = datetime.fromtimestamp(now, UTC).isoformat()
    node = _node(problems)
    if node is not None:
        files["snapshot.json"] = json.dumps(document_of(node), indent=1)
        files["report.html"] = report_page(node, problems)
        files |= _metrics(node, problems)
    files |= {f"machine/{path}": text for path, text in machine_facts().items()}
    files |= _logs(logs, problems)
    files["environment.txt"] = _environment(os.environ)
    files["problems.txt"] = "".join(f"{problem}\n" for problem in problems)
    readme = _README.format(version=version("numalign"), taken=taken)
    files = {"README.txt": readme, **files}
    if str(to) == "-":
        write_bundle(sys.stdout.buffer, "numalign", files, now)
    else:
        with open_bundle(to) as file:
            write_bundle(file, directory_of(to), files, now)
        click.echo(f"{to}: {len(files)} files, {to.stat().st_size} bytes")
    say(problems)
    if problems:
        click.get_current_context().exit(Exit.ERROR)


def _node(problems: list[str]) -> NodeSnapshot | None:
    try:
        node, missing = live_node()
    except (AioRpcError, Unreachable) as error:
        problems += describe(error) or (str(error),)
        return None
    problems += missing
    return node


def _metrics(node: NodeSnapshot, problems: list[str]) -> dict[str, str]:
    """The pages that the configuration says are served; `all` where it is one."""
    section: Any = node.configuration.get("numalign") or {}
    metrics = section.get("metrics") or {}
    addresses = {"all": metrics.get("address"), **(metrics.get("services") or {})}
    found = {}
    for name, address in addresses.items():
        if not address or address.endswith(":0"):
            continue
        host, _, port = address.rpartition(":")
        reachable = "127.0.0.1" if host in {"0.0.0.0", "[::]"} else host  # noqa: S104 - not bound here
        try:
            with urllib.request.urlopen(
                f"http://{reachable}:{port}/metrics", timeout=_PAGE_SECONDS
            ) as page:
                found[f"metrics/{name}.txt"] = scrubbed(page.read().decode(errors="replace"))
        except (OSError, ValueError) as error:
            problems.append(f"metrics of {name} at {address}: {error}")
    return found


def _logs(paths: tuple[Path, ...], problems: list[str]) -> dict[str, str]:
    found = {}
    for number, path in enumerate(paths, 1):
        try:
            with path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _MOST_LOG_BYTES))
                text = file.read().decode(errors="replace")
        except OSError as error:
            problems.append(f"log {path}: {error.strerror}")
            continue
        found[f"logs/{number}-{path.name}"] = scrubbed(text)
    return found


def _environment(variables: Mapping[str, str]) -> str:
    """Variables of numalign and OpenTelemetry; only of harmless ones the values."""
    lines = [
        f"{name}={value if name.startswith(_SHOWN_VARIABLES) else LEFT_OUT}\n"
        for name, value in sorted(variables.items())
        if name.startswith(("NUMALIGN_", "OTEL_", "GRPC_"))
    ]
    return scrubbed("".join(lines))
