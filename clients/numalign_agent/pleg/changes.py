"""What two listings of a pod's containers say has happened in between (PLEG-2). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from numalign_agent.runners.port import ContainerPhase, RuntimeContainer


class EventKind(StrEnum):
    """What has happened to a container, or to a pod."""

    CONTAINER_STARTED = "ContainerStarted"
    CONTAINER_DIED = "ContainerDied"
    CONTAINER_REMOVED = "ContainerRemoved"
    CONTAINER_CHANGED = "ContainerChanged"
    POD_SYNC = "PodSync"


@dataclass(frozen=True, slots=True)
class LifecycleEvent:
    """One event; `container_id` is empty for `PodSync`."""

    pod_uid: str
    kind: EventKind
    container_id: str = ""


Phases = Mapping[str, ContainerPhase]
"""The phase of each container of one pod, by container id."""


def phases_of(containers: Iterable[RuntimeContainer]) -> dict[str, ContainerPhase]:
    """What of a listing is compared."""
    return {container.id: container.phase for container in containers}


def events_between(
    pod_uid: str, before: Phases, after: Phases, *, asked: bool = False
) -> tuple[LifecycleEvent, ...]:
    """Events in the order of container ids.

    `asked`: somebody wants the pod looked at, so that no change is told as `PodSync`.
    """
    events = [
        LifecycleEvent(pod_uid, kind, container)
        for container in sorted(before.keys() | after.keys())
        for kind in _kinds(before.get(container), after.get(container))
    ]
    if not events and asked:
        events.append(LifecycleEvent(pod_uid, EventKind.POD_SYNC))
    return tuple(events)


def _kinds(before: ContainerPhase | None, after: ContainerPhase | None) -> tuple[EventKind, ...]:
    if before is after:
        return ()
    match after:
        case ContainerPhase.RUNNING:
            return (EventKind.CONTAINER_STARTED,)
        case ContainerPhase.EXITED:
            return (EventKind.CONTAINER_DIED,)
        case None if before is ContainerPhase.EXITED:
            return (EventKind.CONTAINER_REMOVED,)
        case None:
            return (EventKind.CONTAINER_DIED, EventKind.CONTAINER_REMOVED)
        case _:
            return (EventKind.CONTAINER_CHANGED,)
