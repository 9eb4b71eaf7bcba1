"""What a clean-up has to do, from a picture of the node. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from numalign_agent.pod import AgentPod
from numalign_agent.pods.active import is_active
from numalign_agent.runners.port import ContainerPhase, RuntimePod
from numalign_agent.workers.work import PodWork, WorkState


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything by UID. `ended`: the agent's own status of the pod is terminal.

    `undecided` wait for Admission; nothing may start or end them meanwhile. `admitted` hold
    what they were given.
    """

    desired: Mapping[str, AgentPod]
    works: Mapping[str, PodWork]
    runtime: Mapping[str, RuntimePod]
    ended: AbstractSet[str]
    undecided: AbstractSet[str]
    admitted: AbstractSet[str]


@dataclass(frozen=True, slots=True)
class CleanUp:
    """UIDs of pods: to start, to ask about, to end, and those that nobody knows."""

    start: tuple[str, ...]
    ask: tuple[str, ...]
    end: tuple[str, ...]
    orphans: tuple[str, ...]


def clean_up(picture: Picture) -> CleanUp:
    """What to do about pods that have no worker."""
    start: list[str] = []
    ask: list[str] = []
    end: list[str] = []
    for uid, pod in picture.desired.items():
        if uid in picture.works or uid in picture.undecided:
            continue
        ended = uid in picture.ended
        if is_active(pod, None, ended=ended):
            # Without a new admission (HSK-5), where it still holds one.
            (start if uid in picture.admitted else ask).append(uid)
        elif pod.deletion_timestamp is not None and uid not in picture.runtime:
            end.append(uid)
    orphans = tuple(
        uid
        for uid, pod in picture.runtime.items()
        if uid not in picture.works and uid not in picture.undecided and _runs(pod)
    )
    return CleanUp(tuple(start), tuple(ask), tuple(end), orphans)


def _runs(pod: RuntimePod) -> bool:
    return any(container.phase is ContainerPhase.RUNNING for container in pod.containers)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many pods there are (HSK-8), by the labels of each gauge."""

    desired: Mapping[str, int]
    active: Mapping[str, int]
    working: Mapping[tuple[str, str, str], int]


def counts(picture: Picture) -> Counts:
    """The gauges' values; every series that can be is there, at 0 if nothing counts."""
    desired = Counter(_static(pod) for pod in picture.desired.values())
    active = Counter(
        _static(pod)
        for uid, pod in picture.desired.items()
        if is_active(pod, picture.works.get(uid), ended=uid in picture.ended)
    )
    working: Counter[tuple[str, str, str]] = Counter()
    for uid, work in picture.works.items():
        config = "desired" if uid in picture.desired else "orphan"
        static = _static(work.pod)
        if work.orphan:
            config, static = "runtime_only", "unknown"
        working[_LIFECYCLES[work.state], config, static] += 1
    return Counts(
        {label: desired[label] for label in _STATIC},
        {label: active[label] for label in _STATIC},
        {key: working[key] for key in _WORKING},
    )


_STATIC = ("true", "")
_LIFECYCLES = {
    WorkState.SYNC: "sync",
    WorkState.TERMINATING: "terminating",
    WorkState.TERMINATED: "terminated",
    WorkState.FINISHED: "terminated",
}
_WORKING = tuple(
    (lifecycle, config, static)
    for lifecycle in ("sync", "terminating", "terminated")
    for config, labels in (
        ("desired", _STATIC),
        ("orphan", _STATIC),
        ("runtime_only", ("unknown",)),
    )
    for static in labels
)


def _static(pod: AgentPod) -> str:
    return "true" if pod.is_static else ""
