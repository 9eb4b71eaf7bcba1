"""What each pod is allocated, and which resizes wait: the state that the resize rules work on.

Separate from having them evaluated, because statuses are computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from numalign.admission.handlers.allocation import allocation_of, resize_gates
from numalign.admission.pod_messages import allocation_from_message
from numalign.admission.resizes.evaluation import (
    Evaluated,
    ResizeState,
    answered,
    is_pending,
    queued,
    settled,
)
from numalign.model.feature_gates import FeatureGates
from numalign.v1 import admission_pb2 as ad
from numalign_agent.pod import AgentPod
from numalign_agent.resizes.reading import (
    condition_document,
    desired,
    restored,
    shown,
    verdict_of,
    with_allocated,
)


class ResizeBook:
    """The resizes of this node's pods. `clock` gives seconds since the epoch."""

    def __init__(self, gates: FeatureGates, clock: Callable[[], float]) -> None:
        self._gates = gates
        self._resize = resize_gates(gates)
        self._clock = clock
        self._state = ResizeState()
        self._probed_at = 0.0

    @property
    def queue(self) -> tuple[str, ...]:
        """The UIDs of pods whose resize waits, in the order in which they are evaluated."""
        return self._state.queue

    def probing(self) -> None:
        """The resizes are about to be evaluated."""
        self._probed_at = self._clock()

    def admitted(self, pod: AgentPod, asked: AgentPod, answer: ad.AdmitResponse) -> bool:
        """A pod was admitted in the form `asked`; whether `pod`, as it is wanted, waits now."""
        form = desired(asked)
        if form is None:
            return False
        allocation = allocation_of(form, self._resize)
        if answer.HasField("resources"):
            allocation = allocation_from_message(answer.resources, form)
        allocations = {**self._state.allocations, pod.uid: allocation}
        self._state = replace(self._state, allocations=allocations)
        known = restored(pod)
        if known is not None:
            self._state = replace(self._state, pending={**self._state.pending, pod.uid: known})
        return self.is_pending(pod)

    def knows(self, pod_uid: str) -> bool:
        """Whether a pod is allocated anything."""
        return pod_uid in self._state.allocations

    def is_pending(self, pod: AgentPod) -> bool:
        """Whether a pod wants something else than it is allocated (RES-1)."""
        wanted = desired(pod)
        return wanted is not None and is_pending(self._state, wanted, self._resize)

    def allocated_form(self, pod: AgentPod) -> AgentPod:
        """The pod as it is to run: while a resize waits, with what it is allocated (RES-4)."""
        allocation = self._state.allocations.get(pod.uid)
        if allocation is None or not self.is_pending(pod):
            return pod
        return with_allocated(pod, allocation)

    def queued(self, uid: str, pods: Mapping[str, AgentPod]) -> None:
        """The resize of one of `pods` waits (RES-2)."""
        known = {}
        for other in (*self._state.queue, uid):
            wanted = desired(pods[other]) if other in pods else None
            if wanted is not None:
                known[other] = wanted
        self._state = queued(self._state, uid, known, self._resize, self._gates)

    def settled(self, uid: str) -> None:
        """There is nothing to do about the resize of a pod any more."""
        self._state = settled(self._state, uid)

    def gone(self, pod_uids: Sequence[str]) -> None:
        """Pods are gone."""
        for uid in pod_uids:
            self._state = replace(
                settled(self._state, uid),
                allocations=_without(self._state.allocations, uid),
                in_progress=_without(self._state.in_progress, uid),
            )

    def answered(self, pod: AgentPod, answer: ad.AdmitResponse) -> Evaluated | None:
        """Admission said something about a resize; what follows. None: the pod is unreadable."""
        wanted = desired(pod)
        if wanted is None:
            return None
        outcome = answered(self._state, wanted, verdict_of(answer), self._clock(), self._resize)
        self._state = outcome.state
        return outcome

    def has_waited(self, uid: str) -> bool:
        """Whether the resize of a pod was refused before."""
        return uid in self._state.pending

    def actuated(self, pod_uid: str) -> None:
        """The containers of a pod run with what it is allocated."""
        if pod_uid in self._state.in_progress:
            in_progress = _without(self._state.in_progress, pod_uid)
            self._state = replace(self._state, in_progress=in_progress)

    def conditions(self, pod_uid: str) -> list[dict[str, Any]]:
        """The conditions that a pod's status has because of its resize."""
        found = (self._state.pending.get(pod_uid), self._state.in_progress.get(pod_uid))
        return [condition_document(c, self._probed_at) for c in found if c is not None]

    def allocated(self, pod_uid: str) -> Mapping[str, Mapping[str, Any]]:
        """What the containers of a pod are allocated, by name."""
        allocation = self._state.allocations.get(pod_uid)
        return {} if allocation is None else shown(allocation)


def _without(values: Mapping[str, Any], uid: str) -> dict[str, Any]:
    return {other: value for other, value in values.items() if other != uid}
