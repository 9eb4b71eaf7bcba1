"""Judging several pods before the first of them is recorded.

Separate from the chain, which judges one pod: what is not recorded yet, and counts all the same
for the pods behind it, is kept here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from numalign.admission.pod_resources.mirror import AdmissionMirror
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

AskTopology = Callable[[bool], Awaitable[ad.AdmitResponse]]
"""Asks the Topology Manager about the pod, as a dry run or for keeps."""


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A pod that was decided on and is not recorded yet: what it would hold, and its bytes."""

    record: pb.AdmissionRecord
    spec: bytes


Judge = Callable[
    [ad.AdmitRequest, bytes, AskTopology, Mapping[str, Unrecorded]], Awaitable[ad.AdmitResponse]
]
"""Decides on a pod beside those that are recorded and these."""


class Sitting:
    """Pods that are judged one after the other, each as if those before it were recorded."""

    def __init__(self, judge: Judge, mirror: AdmissionMirror) -> None:
        self._judge = judge
        self._mirror = mirror
        self._unrecorded: dict[str, Unrecorded] = {}

    async def admit(
        self, request: ad.AdmitRequest, data: bytes, ask: AskTopology
    ) -> ad.AdmitResponse:
        """Decide on the next pod, as the chain does on one."""
        response = await self._judge(request, data, ask, self._unrecorded)
        uid = request.pod.metadata.uid
        if response.verdict == pb.VERDICT_ADMITTED and not request.dry_run:
            record = pb.AdmissionRecord(pod_uid=uid, allocations=response.allocations)
            self._unrecorded[uid] = Unrecorded(record, data)
        return response

    def settled(self, revision: int) -> None:
        """The pods so far are in the record as of this revision, or lost."""
        self._unrecorded = {}
        self._mirror.answered(revision)
