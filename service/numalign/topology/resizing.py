"""Resizing an admitted pod in place: whether it is a resize, and what the providers say to it.

Separate from the manager, which gives turns, and from deciding, which is the same for a pod
that is new: this file holds what a pod that is admitted already brings with it.
"""

from __future__ import annotations

from dataclasses import replace

from numalign.errors import SpecChanged
from numalign.model.ids import AdmissionId
from numalign.model.pod_change import changed_beyond_resize, changed_field
from numalign.model.pod_resources import pod_level_resources_set
from numalign.provider.pod_cache import PodCache
from numalign.topology.allocated import (
    as_allocated,
    changed_claims,
    holds_cpus_or_memory,
    resources_to_message,
)
from numalign.topology.decision import HANDLER, AdmitCall, Decider, Judged, Resized
from numalign.topology.records import Admitted
from numalign.topology.settlement import Settlement
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

INFEASIBLE = "Infeasible"
"""The kubelet's reason for a resize that this node can never grant."""

MANAGED_AS_WHOLE = (
    "Resize is infeasible for pods with pod-level resources that hold CPUs or memory of their own"
)


class Resizing:
    """What is done with admitted pods that want, or are sent with, other CPU or memory.

    `as_new`: see `TopologyStrategies.resizes_as_new`.
    """

    def __init__(
        self, decider: Decider, settlement: Settlement, pods: PodCache, *, as_new: bool
    ) -> None:
        self._decider = decider
        self._settlement = settlement
        self._pods = pods
        self._as_new = as_new

    def check_owner(self, known: Admitted, call: AdmitCall) -> None:
        """Raise SpecChanged where the pod is another owner's."""
        owner = known.message.owner
        if owner != call.owner:
            raise SpecChanged(
                "owner", f'owner: pod "{known.pod_uid}" is admitted for owner "{owner}"'
            )

    def is_pending(self, known: Admitted, call: AdmitCall) -> bool:
        """Whether the pod asks for other CPU or memory than it is allocated (RES-1).

        Raises SpecChanged where it differs in more than a resize can change.
        """
        gates = self._decider.parts.gates
        admitted = self._pods.decode(known.pod)
        changed = changed_beyond_resize(admitted, call.pod, gates)
        if changed is not None:
            raise _another(known, changed)
        return changed_field(admitted, call.pod, gates) is not None

    def shown_as_allocated(self, known: Admitted, call: AdmitCall) -> tuple[AdmitCall, bool]:
        """The call about the pod with what it is allocated, and whether that differs (ADM-6)."""
        gates = self._decider.parts.gates
        data = as_allocated(call.data, known.pod, gates)
        pod = self._pods.decode(data)
        if changed_field(call.pod, pod, gates) is None:
            return call, False
        return replace(call, data=data, pod=pod), True

    def wanted(self, known: Admitted, call: AdmitCall) -> bool:
        """Whether there is anything to resize. Raises SpecChanged where it is no resize."""
        self.check_owner(known, call)
        pending = self.is_pending(known, call)
        changed = changed_claims(known.pod, call.data)
        if changed is not None:
            raise _another(known, changed)
        return pending

    async def decide(self, known: Admitted, call: AdmitCall, admission_id: AdmissionId) -> Judged:
        """Ask the providers about the pod as it is wanted, and record it if they agree.

        Refused, the pod keeps what it has. When it raises, nothing has changed.
        """
        if self._is_managed_as_whole(known, call):
            refusal = ad.AdmitResponse(
                verdict=pb.VERDICT_REJECTED,
                handler=HANDLER,
                reason=INFEASIBLE,
                message=MANAGED_AS_WHOLE,
                revision=known.message.revision,
                dry_run=call.dry_run,
                resources=known.message.resources,
            )
            return Judged(refusal, None)
        finished: frozenset[str] = frozenset()
        if not self._as_new:
            finished = self._settlement.finished(known)
        resized = Resized(known, finished)
        judged = await self._decider.decide(call, admission_id, resized)
        judged.response.resources.CopyFrom(
            resources_to_message(call.pod, self._decider.parts.gates)
            if judged.result is not None and judged.result.admitted
            else known.message.resources
        )
        return judged

    def _is_managed_as_whole(self, known: Admitted, call: AdmitCall) -> bool:
        """Whether the pod holds something that its pod-level resources were cut from.

        The kubelet would take its share anew and lose what it held (CPU-78, MEM-T5).
        """
        gates = self._decider.parts.gates
        return (
            not self._as_new
            and gates.pod_level_resource_managers
            and any(map(pod_level_resources_set, (self._pods.decode(known.pod), call.pod)))
            and holds_cpus_or_memory(known.message)
        )


def _another(known: Admitted, field: str) -> SpecChanged:
    return SpecChanged(
        field,
        f'{field}: pod "{known.pod_uid}" is admitted with another value, which no resize can '
        "change",
    )
