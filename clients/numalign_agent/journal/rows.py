"""What the journal holds: one row for each pod that is there, and what happened, in order.

Values only; `store` puts them on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numalign_agent.pod import TERMINAL_PHASES


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRow:
    """What is known of one pod. `rank` orders pods by their first admission; None: never.

    `verdict` is `admitted`, `rejected` or empty; `decided_at` is in seconds since the epoch.
    """

    uid: str
    namespace: str
    name: str
    source: str = ""
    rank: int | None = None
    verdict: str = ""
    handler: str = ""
    reason: str = ""
    message: str = ""
    decided_at: float = 0.0
    status: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_rejected(self) -> bool:
        """Whether Admission refused it, for good."""
        return self.verdict == "rejected"

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or never started."""
        return self.status.get("phase") in TERMINAL_PHASES


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that happened. `kind` is `decision` or `event`; `at` as in PodRow."""

    at: float
    kind: str
    uid: str
    pod: str
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a source cannot use: a path or an address, and why."""

    source: str
    place: str
    why: str
