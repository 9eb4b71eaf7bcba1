"""`numalign simulate`: would these pods fit, in this order; nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from numalign.admission.node_file import read_node
from numalign.cli.calls import run
from numalign.cli.commands.admit import LEVELS, Outcome, document_of, name_of
from numalign.cli.failure import describe_item, say
from numalign.cli.manifests import read_pods
from numalign.cli.options import (
    current_reach,
    environment,
    examples,
    node_options,
    output_option,
    reach_options,
)
from numalign.cli.output import emit
from numalign.cli.simulating import Simulation, ask_to_simulate
from numalign.cli.snapshot.live import node_of, snapshot_option
from numalign.cli.snapshot.redaction import redacted
from numalign.cli.verdicts import Exit, worst
from numalign.config.loader import load_document, load_settings
from numalign.config.machine_source import read_machine
from numalign.config.settings import MachineFile
from numalign.config.settings_document import settings_document
from numalign.kube.core.v1 import core_pb2
from numalign.machine.schema import document_of_machine
from numalign.model.machine import Machine
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

if TYPE_CHECKING:
    from rich.console import RenderableType

    from numalign.process.simulation import Copy

_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")


@dataclass(frozen=True, slots=True, kw_only=True)
class Under:
    """What is to be another than the node has it; empty where it is not."""

    policy: str
    scope: str
    configuration: Path | None


@click.command(
    epilog=examples(
        "numalign simulate pod.yaml more-pods.yaml",
        "numalign simulate --node worker-7 pod.yaml",
        "numalign simulate --policy restricted --scope pod pod.yaml",
        "numalign simulate --snapshot node.json pod.yaml",
        "numalign simulate --machine machine.yaml --under config.yaml pod.yaml",
    )
)
@click.argument("manifests", nargs=-1, required=True, metavar="POD.yaml...")
@click.option(
    "--machine",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An empty node on the machine of this file.",
)
@snapshot_option
@click.option("--policy", type=click.Choice(_POLICIES), help="Under this topology manager policy.")
@click.option("--scope", type=click.Choice(["container", "pod"]), help="Under this scope.")
@click.option(
    "--under",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Under this configuration; the machine stays.",
)
@click.option(
    "--node-object",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Judge by this Node object, too: the whole chain of admit handlers.",
)
@click.option(
    "--explain",
    type=click.Choice(list(LEVELS)),
    default="summary",
    show_default=True,
    help="How much to say about the way.",
)
@node_options
@reach_options
@output_option
def simulate(
    manifests: tuple[str, ...],
    machine: Path | None,
    snapshot: Path | None,
    policy: str | None,
    scope: str | None,
    under: Path | None,
    node_object: Path | None,
    explain: str,
) -> None:
    """Say whether pods would fit, in this order, each beside those before it.

    They are decided on by the same services over a copy of the node: of the one that runs here, of
    another one of the cluster, of a snapshot, or of an empty one on a machine file. A node that
    runs makes the copy itself; the node itself is only read, once.

    Exit codes: 0 all would be admitted, 3 rejected, 4 not yet, 1 error; the worst counts.
    """
    if machine is not None and snapshot is not None:
        raise click.UsageError("--machine and --snapshot exclude each other")
    if machine is not None and current_reach().remote is not None:
        raise click.UsageError("--machine and --node exclude each other")
    pods, ignored = read_pods(manifests)
    say(ignored)
    wanted = Under(policy=policy or "", scope=scope or "", configuration=under)
    level = LEVELS[explain]
    found = None
    if machine is None and snapshot is None:
        found = ask_to_simulate(_request(pods, wanted, node_object, level))
    if found is None:
        copy = _copy(machine, snapshot, wanted, node_object)
        if snapshot is not None:
            # As the pods in it: what they run is not in the file.
            pods = tuple(redacted(pod) for pod in pods)
        found = _simulated_here(copy, pods, level)
    outcomes = [
        Outcome(
            pod,
            one.decision if one.HasField("decision") else None,
            describe_item(one.error) if one.HasField("error") else (),
        )
        for pod, one in zip(pods, found.pods, strict=True)
    ]
    names = {**found.names, **{pod.metadata.uid: name_of(pod) for pod in pods}}
    document = {"pods": [document_of(outcome) for outcome in outcomes], "notes": list(found.notes)}
    emit(document, lambda: _draw(outcomes, names, found.notes))
    for outcome in outcomes:
        say(f"{name_of(outcome.pod)}: {line}" for line in outcome.failure)
    click.get_current_context().exit(worst(outcome.code for outcome in outcomes))


def _request(
    pods: tuple[core_pb2.Pod, ...],
    wanted: Under,
    node_object: Path | None,
    explain: pb.ExplainLevel.ValueType,
) -> ad.SimulateRequest:
    """What a node that runs is asked. Raises ConfigError naming a file that cannot be used."""
    return ad.SimulateRequest(
        pods=pods,
        policy=wanted.policy,
        scope=wanted.scope,
        configuration=_text_of(wanted.configuration),
        node=None if node_object is None else read_node(node_object),
        explain=explain,
    )


def _text_of(file: Path | None) -> str:
    """The configuration as text; empty for none. Raises ConfigError."""
    if file is None:
        return ""
    load_document(file)
    # An empty text would be no configuration at all, and an empty file is one of defaults.
    return file.read_text(encoding="utf-8") or "{}"


def _simulated_here(
    copy: Copy, pods: tuple[core_pb2.Pod, ...], explain: pb.ExplainLevel.ValueType
) -> Simulation:
    from numalign.process.simulation import simulate as simulate_copy  # noqa: PLC0415 - large

    names = {record.pod_uid: f"{record.namespace}/{record.name}" for record, _ in copy.admissions}
    answers = run(simulate_copy(copy, pods, explain))
    return Simulation(pods=answers, names=names, notes=copy.notes)


def _copy(
    machine: Path | None, snapshot: Path | None, wanted: Under, node_object: Path | None
) -> Copy:
    from numalign.process.simulation import changed, copy_of, inventory_of  # noqa: PLC0415 - large

    if machine is not None:
        found = read_machine(MachineFile(machine))
        say(found.warnings)
        configuration = _configured(wanted.configuration, found.machine)
        return copy_of(changed(configuration, wanted.policy, wanted.scope), (), None, node_object)
    node, problems = node_of(snapshot)
    say(problems)
    configuration = dict(node.configuration)
    if wanted.configuration is not None:
        configuration = _configured(wanted.configuration, node.machine)
    # The devices are the node's, however it came by them.
    inventory = None if node.device is None else inventory_of(node.device)
    theirs = wanted.configuration is not None and inventory is not None
    return copy_of(
        changed(configuration, wanted.policy, wanted.scope, with_node_devices=theirs),
        [(admitted.record, admitted.pod) for admitted in node.admissions],
        inventory,
        node_object,
        [provider.name for provider in node.providers if not provider.built_in],
    )


def _configured(file: Path | None, machine: Machine) -> dict[str, Any]:
    """The configuration of the file, for this machine."""
    machine_of_it = {"machine": document_of_machine(machine)}
    return settings_document(load_settings(file, *environment(), machine_of_it))


def _draw(
    outcomes: list[Outcome], names: Mapping[str, str], notes: tuple[str, ...]
) -> Iterator[RenderableType]:
    from rich.text import Text  # noqa: PLC0415 - large, and only for people

    from numalign.cli.tables.decision import decision_parts  # noqa: PLC0415 - as above

    for outcome in outcomes:
        if outcome.decision is not None:
            yield from decision_parts(name_of(outcome.pod), outcome.decision, names)
    fit = sum(outcome.code is Exit.ADMITTED for outcome in outcomes)
    yield Text(f"{fit} of {len(outcomes)} would be admitted; nothing was kept", style="bold")
    for note in notes:
        yield Text(f"note: {note}", style="dim")
