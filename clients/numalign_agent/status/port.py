"""Who hears what has become of pods, and what such a listener may ask the agent.

Separate from every listener, so that the loop is the same whether an API server, the journal
on disk, or both are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

from numalign_agent.pod import AgentPod


class EventType(StrEnum):
    """What an event means to whoever reads it."""

    NORMAL = "Normal"
    WARNING = "Warning"


class StatusSink(Protocol):
    """Hears statuses and events. No method waits for anybody: what is heard is sent by `run`.

    Of several statuses of one pod only the latest has to be sent.
    """

    def set_status(self, pod: AgentPod, status: Mapping[str, Any]) -> None:
        """The agent's own view of the pod's `status` changed (STAT-1)."""

    def event(self, pod: AgentPod, kind: EventType, reason: str, message: str) -> None:
        """Something happened to the pod."""

    def forget(self, pod_uid: str) -> None:
        """The pod is neither wanted nor a mirror any more: nothing of it is sent (HSK-3)."""

    def recheck(self, pod_uid: str) -> None:
        """Answers of `PodQuestions` about the pod changed: what was held back may go now."""

    async def run(self) -> None:
        """Send until cancelled. Trouble is logged and tried again; it raises nothing."""


class MirrorPods(Protocol):
    """Shows static pods in the API (MIR). Errors are logged only."""

    async def reconcile(self, static: AgentPod, mirror: AgentPod | None) -> None:
        """Make the mirror pod be there and be the right one (MIR-3)."""

    async def delete(self, mirror: AgentPod) -> None:
        """Delete a mirror pod whose static pod is gone (MIR-5)."""


class PodQuestions(Protocol):
    """What a sink asks before it sends (STAT-2 to STAT-4, WRK-12)."""

    def pod(self, pod_uid: str) -> AgentPod | None:
        """The wanted pod as its source has it now."""

    def mirror_of(self, pod: AgentPod) -> AgentPod | None:
        """The mirror pod of a static pod, if the API has one."""

    def may_run(self, pod_uid: str) -> bool:
        """Whether containers of the pod could be running."""

    def is_finished(self, pod_uid: str) -> bool:
        """Whether the pod's worker has nothing left to do."""
