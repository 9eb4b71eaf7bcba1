"""The agent's own latest status of each pod, and who is told when one changes.

Keeps what `status.compute` made; the sinks send it. Separate from both, because the status of
a pod outlives its worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from numalign_agent.pod import TERMINAL_PHASES, AgentPod
from numalign_agent.status.port import EventType, StatusSink

_NONE: Mapping[str, Any] = {}


class StatusCache:
    """Statuses by pod UID, told to every sink (STAT-1)."""

    def __init__(self, sinks: Sequence[StatusSink]) -> None:
        self._sinks = list(sinks)
        self._statuses: dict[str, Mapping[str, Any]] = {}

    def tell(self, sink: StatusSink) -> None:
        """Tell one more sink from now on."""
        self._sinks.append(sink)

    def restore(self, statuses: Mapping[str, Mapping[str, Any]]) -> None:
        """Begin with what an earlier agent of this node knew."""
        self._statuses.update(statuses)

    def get(self, pod_uid: str) -> Mapping[str, Any]:
        """The latest status; empty where there is none."""
        return self._statuses.get(pod_uid, _NONE)

    def is_terminal(self, pod_uid: str) -> bool:
        """Whether the latest status says that the pod has ended."""
        return self.get(pod_uid).get("phase") in TERMINAL_PHASES

    def set(self, pod: AgentPod, status: Mapping[str, Any]) -> bool:
        """Keep a status; whether it is another one, and so was told.

        One that says nothing else is told all the same while the pod is being deleted (STAT-1).
        """
        if status == self._statuses.get(pod.uid) and pod.deletion_timestamp is None:
            return False
        self._statuses[pod.uid] = status
        for sink in self._sinks:
            sink.set_status(pod, status)
        return True

    def event(self, pod: AgentPod, kind: EventType, reason: str, message: str) -> None:
        """Something happened to a pod."""
        for sink in self._sinks:
            sink.event(pod, kind, reason, message)

    def recheck(self, pod_uid: str) -> None:
        """Answers about the pod changed that sinks ask for before they send."""
        for sink in self._sinks:
            sink.recheck(pod_uid)

    def forget_all_but(self, kept: AbstractSet[str]) -> None:
        """Drop statuses of pods that are neither wanted nor mirrors (HSK-3)."""
        self.forget(uid for uid in tuple(self._statuses) if uid not in kept)

    def forget(self, pod_uids: Iterable[str]) -> None:
        """Drop the statuses of these pods."""
        for uid in pod_uids:
            self._statuses.pop(uid, None)
            for sink in self._sinks:
                sink.forget(uid)
