"""What is said where the journal has nothing of what was asked for: what it has instead. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from numalign.admission.journal.selection import is_of_pod
from numalign.v1 import decisions_pb2 as dc

_MOST_NAMED = 6


def nothing_found(wanted: dc.DecisionFilter, kept: dc.ListDecisionsResponse) -> Iterator[str]:
    """Lines for a filter that lets nothing through; `kept` is all that there is."""
    if not kept.decisions:
        yield "no decisions: the journal is empty"
        return
    count = len(kept.decisions) + kept.left_out
    many = "1 decision" if count == 1 else f"{count} decisions"
    yield f"no decisions like that: the journal has {many} and goes back to {since(kept)}"
    reasons = {d.reason for d in kept.decisions if d.reason}
    yield from _unknown("reason", wanted.reasons, reasons)
    owners = {d.owner for d in kept.decisions}
    yield from _unknown("owner", [wanted.owner] if wanted.owner else [], owners)
    if wanted.pod and not any(is_of_pod(d, wanted.pod) for d in kept.decisions):
        pods = {f"{d.namespace}/{d.name}" for d in kept.decisions}
        yield from _unknown("pod", [wanted.pod], pods)


def since(kept: dc.ListDecisionsResponse) -> str:
    """When the oldest decision was made, to the second, in this machine's time zone."""
    return _text(kept.kept_since)


def _text(time: Timestamp) -> str:
    moment = datetime.fromtimestamp(time.seconds, UTC).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _unknown(what: str, named: Sequence[str], known: Iterable[str]) -> Iterator[str]:
    """A line for each name that no decision has."""
    there = sorted(known)
    more = f" and {len(there) - _MOST_NAMED} more" if len(there) > _MOST_NAMED else ""
    listed = ", ".join(there[:_MOST_NAMED]) + more
    for name in named:
        if name not in there:
            yield f"{what} {name}: none; there is {listed or 'no other'}"
