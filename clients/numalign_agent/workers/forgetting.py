"""Which workers housekeeping forgets, ends or pushes on (WRK-10). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from numalign_agent.workers.work import PodWork, WorkState


@dataclass(frozen=True, slots=True)
class Pruned:
    """UIDs of workers, each in one list at most."""

    forget: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    push: tuple[str, ...] = ()


def pruned(
    works: Mapping[str, PodWork], desired: AbstractSet[str], in_runtime: AbstractSet[str]
) -> Pruned:
    """What to do about each worker; `desired` and `in_runtime` are UIDs of pods."""
    forget: list[str] = []
    end: list[str] = []
    push: list[str] = []
    for uid, work in works.items():
        orphan = uid not in desired
        if not orphan and not work.restart_requested:
            continue
        if work.state is WorkState.FINISHED:
            forget.append(uid)
        elif not orphan:
            continue
        elif not work.started and not work.observed_end and uid not in in_runtime:
            forget.append(uid)
        elif not work.end_requested:
            end.append(uid)
        else:
            push.append(uid)
    return Pruned(tuple(forget), tuple(end), tuple(push))
