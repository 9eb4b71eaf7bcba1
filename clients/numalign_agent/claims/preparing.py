"""Having the claims of a pod prepared before its first container starts (DRA-17).

The agent reads the claims; whether the pod may use them is for the service to say.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.kube.claims import refers_to_claims
from numalign.kube.pod_json import pod_from_json
from numalign.v1 import types_pb2 as pb
from numalign_agent.admitting.calls import AdmissionCalls
from numalign_agent.claims.port import ClaimReader
from numalign_agent.claims.reading import read_claims
from numalign_agent.pod import AgentPod
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.port import EventType
from numalign_agent.workers.port import OperationFailed
from numalign_client.errors import AdmissionError

REASON = "FailedPrepareDynamicResources"
RETRY_SECONDS = 1.0


class ClaimPreparing:
    """See PodClaims."""

    def __init__(self, calls: AdmissionCalls, reader: ClaimReader, cache: StatusCache) -> None:
        self._calls = calls
        self._reader = reader
        self._cache = cache
        self._told: dict[str, str] = {}

    async def prepare(self, pod: AgentPod) -> None:
        """Read the pod's claims and have them prepared; nothing to do for a pod without any.

        Raises OperationFailed, with when to try again.
        """
        message = pod_from_json(pod.document)
        if not refers_to_claims(message):
            return
        try:
            answer = await self._calls.prepare_pod(
                message, await read_claims(self._reader, message)
            )
        except AdmissionError as error:
            self._tell(pod, error.message)
            raise OperationFailed(error.message, RETRY_SECONDS) from error
        if answer.verdict != pb.VERDICT_ADMITTED:
            self._tell(pod, answer.message)
            raise OperationFailed(answer.message, answer.retry_after.ToTimedelta().total_seconds())
        self._told.pop(pod.uid, None)

    def forget(self, pod_uids: Iterable[str]) -> None:
        """These pods are gone."""
        for pod_uid in pod_uids:
            self._told.pop(pod_uid, None)

    def _tell(self, pod: AgentPod, message: str) -> None:
        """Say it once, and not at every try."""
        if self._told.get(pod.uid) != message:
            self._told[pod.uid] = message
            self._cache.event(pod, EventType.WARNING, REASON, message)
