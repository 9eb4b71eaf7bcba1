"""In which order pods are presented after a restart. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from numalign_agent.pod import AgentPod

HOLD_SECONDS = 30.0
"""How long pods that are new wait for those whose admission was lost."""


def by_creation(pods: Iterable[AgentPod]) -> list[AgentPod]:
    """Oldest first; static pods, which have no creation time, before all (ADD-1)."""
    return sorted(pods, key=lambda pod: pod.created)


def first_admissions(journal: Mapping[str, int], recorded: Sequence[str]) -> dict[str, int]:
    """Rank by UID: as the journal has it, then as Admission lists those it does not have."""
    ranks = dict(journal)
    following = max(ranks.values(), default=0) + 1
    for uid in recorded:
        if uid not in ranks:
            ranks[uid] = following
            following += 1
    return ranks


def holds_new(
    lost: AbstractSet[str], presented: AbstractSet[str], *, sources_ready: bool, waited: float
) -> bool:
    """Whether new pods wait, so that none takes what an earlier one had.

    `lost` are pods that were admitted and that Admission does not know any more, `presented`
    those that a source has named since the start.
    """
    return bool(lost - presented) and not sources_ready and waited < HOLD_SECONDS
