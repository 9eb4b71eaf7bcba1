"""Which pods end when, once the node is about to shut down (SHUT-4), and who comes back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from numalign.admission.handlers.node_shutdown import REASON as REFUSED
from numalign.admission.handlers.node_shutdown import GraceGroup, group_of
from numalign_agent.journal.rows import PodRow
from numalign_agent.pod import AgentPod
from numalign_agent.workers.grace import spec_grace
from numalign_agent.workers.work import EndedBy, Kill

REASON = "Terminated"
MESSAGE = "Pod was terminated in response to imminent node shutdown."
ENDED_BY = EndedBy(
    REASON,
    MESSAGE,
    condition={
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": MESSAGE,
    },
)

_API = "api"


@dataclass(frozen=True, slots=True)
class Ending:
    """Pods that end together; `seconds` is how long the next ones wait for them at most."""

    seconds: float
    pods: tuple[AgentPod, ...]


def endings(pods: Iterable[AgentPod], groups: Sequence[GraceGroup]) -> tuple[Ending, ...]:
    """The pods in the order in which they end: the least important first; no empty ones."""
    members: list[list[AgentPod]] = [[] for _ in groups]
    for pod in pods:
        members[group_of(pod.spec.get("priority"), groups)].append(pod)
    return tuple(
        Ending(group.grace, tuple(of_group))
        for group, of_group in zip(groups, members, strict=True)
        if of_group
    )


def kill_of(pod: AgentPod, seconds: float) -> Kill:
    """How a pod of such a group is ended: it has the group's time, or its own if that is less."""
    own = spec_grace(pod)
    return Kill(
        grace=int(seconds if own is None else min(own, seconds)),
        ended_by=ENDED_BY,
    )


def coming_back(rows: Mapping[str, PodRow]) -> tuple[str, ...]:
    """The pods that are to be judged anew although they have ended or were refused.

    It was for a shutdown of the node, and no API server says that they are over: a manifest says
    that they are to run.
    """
    return tuple(
        uid
        for uid, row in rows.items()
        if row.source != _API
        and (
            (row.status.get("reason"), row.status.get("message")) == (REASON, MESSAGE)
            or (row.is_rejected and row.reason == REFUSED)
        )
    )
