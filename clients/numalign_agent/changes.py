"""What the merge of the sources tells the sync loop.

Separate from both, because it is all that they know of each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from numalign_agent.pod import AgentPod


class Operation(StrEnum):
    """What has happened to the pods of a change (LOOP-3)."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    REMOVE = "REMOVE"
    DELETE = "DELETE"
    RECONCILE = "RECONCILE"


@dataclass(frozen=True, slots=True)
class PodChange:
    """One message to the sync loop: pods of one source that the same has happened to."""

    operation: Operation
    source: str
    pods: tuple[AgentPod, ...]
