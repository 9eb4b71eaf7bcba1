"""What the demonstration asks, and what has to come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from numalign.kube.core.v1 import core_pb2
from numalign.kube.templates import pods_from_text
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One pod to ask about. `cpus` are the exclusive CPUs that each container has to get."""

    sample: str
    verdict: pb.Verdict.ValueType = pb.VERDICT_ADMITTED
    reason: str = ""
    cpus: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False


STEPS = (
    Step(sample="01-database.yaml", cpus={"postgres": "1-2,9-10"}),
    Step(sample="02-training.yaml", cpus={"trainer": "4,12"}),
    Step(sample="03-web.yaml", cpus={"nginx": ""}),
    Step(sample="04-pipeline.yaml", cpus={"prepare": "5-6,13-14", "process": "5,13"}),
    Step(sample="05-analytics.yaml", verdict=pb.VERDICT_REJECTED, reason="TopologyAffinityError"),
    Step(sample="06-cache.yaml", cpus={"redis": "3,11"}, dry_run=True),
)
TRACED = "02-training.yaml"
"""The sample whose way through the services is shown."""


def sample_text(name: str) -> str:
    """The manifest of a sample."""
    return files("numalign.cli.demo").joinpath("samples", name).read_text(encoding="utf-8")


def remark_of(text: str) -> str:
    """What a sample says of itself in the comment on its top."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return " ".join(lines)


def pod_of(text: str) -> core_pb2.Pod:
    """The one pod of a sample."""
    (pod,) = pods_from_text(text).pods
    return pod


def surprises(step: Step, answer: ad.AdmitResponse) -> list[str]:
    """In what the answer is not the one that has to come."""
    found = []
    if answer.verdict != step.verdict:
        expected, got = (pb.Verdict.Name(verdict) for verdict in (step.verdict, answer.verdict))
        found.append(f"{step.sample}: {expected} was expected, and it is {got}")
    if answer.reason != step.reason:
        found.append(f"{step.sample}: reason {step.reason!r} was expected, not {answer.reason!r}")
    cpus = {held.container: held.cpus for held in answer.allocations}
    if cpus != step.cpus:
        found.append(f"{step.sample}: CPUs {dict(step.cpus)} were expected, not {cpus}")
    if answer.dry_run != step.dry_run:
        found.append(f"{step.sample}: the answer is {'' if answer.dry_run else 'not '}a dry run")
    return found
