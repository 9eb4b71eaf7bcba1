"""How an answer was reached: the paragraph, what stood in the way, and every merge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from numalign.cli.tables.amounts import amount_text, hint_text, mask_text
from numalign.families.choices import some_choices
from numalign.model.hint import FamilyList
from numalign.provider.hint_messages import hint_to_message, list_from_message
from numalign.v1 import types_pb2 as pb

_MOST_HINTS = 12
"""More hints of one resource than this are counted, not listed."""


def explanation_parts(
    explanation: pb.Explanation, names: Mapping[str, str]
) -> Iterator[RenderableType]:
    """The paragraph, then the parts that are there; `names` name pods by uid."""
    if explanation.summary:
        yield Text(with_names(explanation.summary, names), style="italic")
    for obstacle in explanation.obstacles:
        yield from _obstacle(obstacle, names)
    if explanation.merges:
        yield _merges(explanation.merges)
    if explanation.allocate_calls:
        yield _allocate_calls(explanation.allocate_calls)
    if explanation.plugin_calls:
        yield _plugin_calls(explanation.plugin_calls)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """The text with pods by name where it has them by uid.

    A uid can be any text: one that is a word of letters, such as `a`, counts only where no word
    follows.
    """
    if not names:
        return text
    uids = "|".join(
        re.escape(uid) + (r"(?=[^\w\s-]| \(|$)" if uid.isalpha() else r"(?![\w-])")
        for uid in sorted(names, key=len, reverse=True)
    )
    return re.sub(rf"(?<![\w./-])(?:{uids})", lambda found: names[found.group()], text)


def _obstacle(obstacle: pb.Obstacle, names: Mapping[str, str]) -> Iterator[RenderableType]:
    where = f"container {obstacle.container}" if obstacle.container else "the pod"
    yield Text(f"in the way of {where}: {', '.join(obstacle.resources) or 'no single resource'}")
    if obstacle.facts:
        yield _facts(obstacle.facts, names)


def _facts(facts: Iterable[pb.ResourceFacts], names: Mapping[str, str]) -> Table:
    table = _table("resource", "asked", "node", "capacity", "reserved", "free", "held by")
    for fact in facts:
        first = True
        for node in fact.nodes:
            table.add_row(
                fact.resource if first else "",
                amount_text(fact.resource, fact.requested) if first else "",
                str(node.numa_node),
                amount_text(fact.resource, node.capacity),
                amount_text(fact.resource, node.reserved),
                amount_text(fact.resource, node.free),
                ", ".join(_holder(fact.resource, holder, names) for holder in node.holders) or "-",
            )
            first = False
    return table


def _holder(resource: str, holder: pb.Holder, names: Mapping[str, str]) -> str:
    pod = names.get(holder.pod_uid, holder.pod_uid)
    name = f"{pod}/{holder.container}" if holder.container else pod
    return f"{name} {amount_text(resource, holder.amount)}"


def _merges(merges: Iterable[pb.MergeRecord]) -> Table:
    table = _table("merge", "provider", "resource", "hints", "best", "policy")
    for merge in merges:
        name = merge.container or "(the pod)"
        best = (hint_text(merge.best), "admits" if merge.admitted else "refuses")
        for provider, resource, hints in _hint_rows(merge.providers):
            table.add_row(name, provider, resource, hints, *best)
            name, best = "", ("", "")
    return table


def _hint_rows(providers: Iterable[pb.ProviderHints]) -> Iterator[tuple[str, str, str]]:
    for answer in providers:
        if not answer.HasField("hints") or not answer.hints.resources:
            yield answer.provider, "-", "no preference"
            continue
        provider = answer.provider
        for resource in sorted(answer.hints.resources):
            yield provider, resource, hints_cell(answer.hints.resources[resource])
            provider = ""


def hints_cell(hints: pb.HintList) -> str:
    """The hints of one resource; a star marks the preferred ones."""
    if hints.kind == pb.HintList.KIND_NO_PREFERENCE:
        return "no preference"
    if hints.kind == pb.HintList.KIND_IMPOSSIBLE:
        return "nowhere"
    given = list_from_message(hints, "hints")
    if isinstance(given, FamilyList):
        return _described_cell(given)
    affinities = hints.has_affinity or [True] * len(hints.masks)
    texts = [
        mask_text(pb.Hint(mask=mask) if has else pb.Hint()) + ("*" if preferred else "")
        for mask, preferred, has in zip(hints.masks, hints.preferred, affinities, strict=True)
    ]
    if len(texts) > _MOST_HINTS:
        texts[_MOST_HINTS:] = [f"and {len(texts) - _MOST_HINTS} more"]
    return " ".join(texts)


def _described_cell(family: FamilyList) -> str:
    choices = some_choices(family, _MOST_HINTS)
    texts = [
        mask_text(hint_to_message(hint)) + ("*" if hint.preferred else "") for hint in choices.hints
    ]
    return " ".join(texts if choices.complete else [*texts, "and more"])


def _allocate_calls(calls: Iterable[pb.AllocateCall]) -> Table:
    table = _table("allocate", "provider", "outcome")
    for call in calls:
        table.add_row(call.container or "(the pod)", call.provider, call.error or "ok")
    return table


def _plugin_calls(calls: Iterable[pb.PluginCall]) -> Table:
    table = _table("plugin call", "container", "resource", "asked", "answer")
    for call in calls:
        if call.call == "Allocate":
            asked, answer = ", ".join(call.devices), call.error or "ok"
        else:
            asked = f"{call.size} of {', '.join(call.available)}"
            if call.must_include:
                asked += f" with {', '.join(call.must_include)}"
            answer = call.error or ", ".join(call.response) or "none"
        table.add_row(call.call, call.container, call.resource, asked, answer)
    return table


def _table(*columns: str) -> Table:
    table = Table(*columns, box=None, pad_edge=True)
    for column in table.columns:
        column.overflow = "fold"
    return table
