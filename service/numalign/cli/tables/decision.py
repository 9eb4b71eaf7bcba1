"""The answer to one Admit, as it is read: verdict, what each container got, why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from numalign.cli.tables.allocation import allocation_table
from numalign.cli.tables.explanation import explanation_parts
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

_WORDS: Mapping[pb.Verdict.ValueType, tuple[str, str]] = {
    pb.VERDICT_ADMITTED: ("admitted", "bold green"),
    pb.VERDICT_REJECTED: ("rejected", "bold red"),
    pb.VERDICT_DEFERRED: ("not yet", "bold yellow"),
}
_INDENT = (0, 0, 0, 2)


def decision_parts(
    pod: str, answer: ad.AdmitResponse, names: Mapping[str, str]
) -> Iterator[RenderableType]:
    """Everything to print about one decision.

    `pod` is what the pod is called, `names` what other pods are called, by uid.
    """
    yield _headline(pod, answer)
    if answer.message:
        yield Padding(Text(answer.message), _INDENT, expand=False)
    if answer.HasField("retry_after"):
        seconds = answer.retry_after.ToMilliseconds() / 1000
        yield Padding(Text(f"ask again in {seconds:g} s"), _INDENT, expand=False)
    for victim in answer.victims:
        text = f"to end first: {victim.namespace}/{victim.name} ({victim.pod_uid})"
        yield Padding(Text(text), _INDENT, expand=False)
    if answer.allocations:
        yield Padding(
            allocation_table(answer.allocations, answer.pod_allocation), _INDENT, expand=False
        )
    for line in _resources(answer):
        yield Padding(Text(line), _INDENT, expand=False)
    for warning in answer.warnings:
        yield Padding(Text(f"warning: {warning}", style="yellow"), _INDENT, expand=False)
    if answer.HasField("explanation"):
        for part in explanation_parts(answer.explanation, names):
            yield Padding(part, _INDENT, expand=False)
    yield Text()


def verdict_word(verdict: pb.Verdict.ValueType) -> tuple[str, str]:
    """What people call a verdict, and its style."""
    return _WORDS.get(verdict, (f"verdict {verdict}", "bold"))


def _headline(pod: str, answer: ad.AdmitResponse) -> Text:
    word, style = verdict_word(answer.verdict)
    line = Text.assemble((pod, "bold"), "  ", (word, style))
    if answer.reason:
        line.append(f"  {answer.reason}")
    if answer.handler_reason not in {"", answer.reason}:
        line.append(f" ({answer.handler_reason})")
    if answer.already_admitted:
        line.append("  (it was admitted before; this is what it has)")
    elif answer.dry_run:
        line.append("  (dry run: nothing is kept)")
    return line


def _resources(answer: ad.AdmitResponse) -> Iterator[str]:
    """What the pod is allocated, where the answer tells it: a line for each container."""
    if answer.resize_pending:
        yield "a resize is pending: the pod asks for other CPU or memory than it is allocated"
    for entry in answer.resources.containers:
        yield f"allocated to {entry.container}: {_amounts(entry.amounts)}"
    if answer.resources.HasField("pod"):
        yield f"allocated to the pod: {_amounts(answer.resources.pod)}"


def _amounts(amounts: pb.ResourceAmounts) -> str:
    """Requests and limits, as `requests cpu 1; limits cpu 2`."""
    kinds = (("requests", amounts.requests), ("limits", amounts.limits))
    named = (
        f"{kind} {', '.join(f'{name} {of[name]}' for name in sorted(of))}"
        for kind, of in kinds
        if of
    )
    return "; ".join(named) or "nothing"
