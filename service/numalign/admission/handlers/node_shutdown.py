"""The node shutdown handler, and the groups in which pods end then (SHUT-1 to SHUT-4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from numalign.admission.handlers.importance import CRITICAL_PRIORITY
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected

REASON = "NodeShutdown"
MESSAGE = "Pod was rejected as the node is shutting down."


@dataclass(frozen=True, slots=True)
class GraceGroup:
    """Pods from `priority` up, to the next group, get `grace` seconds to end."""

    priority: int
    grace: float


def grace_groups(
    period: float, critical_period: float, by_priority: Iterable[tuple[int, float]]
) -> tuple[GraceGroup, ...]:
    """The groups by ascending priority; none if graceful shutdown is not configured (SHUT-2).

    Times are in seconds. Groups by priority overrule the two plain periods.
    """
    groups = tuple(
        sorted((GraceGroup(p, grace) for p, grace in by_priority), key=lambda group: group.priority)
    )
    if groups:
        return groups
    if period <= 0 or critical_period < 0 or period < critical_period:
        return ()
    return (
        GraceGroup(0, period - critical_period),
        GraceGroup(CRITICAL_PRIORITY, critical_period),
    )


def decide_node_shutdown(shutting_down: bool, groups: Sequence[GraceGroup]) -> Verdict:
    """Refuse every pod while the node shuts down gracefully (SHUT-1)."""
    if shutting_down and groups:
        return rejected(REASON, MESSAGE)
    return ADMITTED


def group_of(priority: int | None, groups: Sequence[GraceGroup]) -> int:
    """The position of the group that a pod of this priority belongs to (SHUT-4).

    Of groups with the same priority the first takes the pods of exactly that priority.
    """
    priorities = [group.priority for group in groups]
    place = bisect_left(priorities, priority or 0)
    if place < len(priorities) and priorities[place] == (priority or 0):
        return place
    return max(place - 1, 0)
