"""What a policy is: it turns the providers' answers into one hint and says whether it will do.

One file per policy; this one holds what they share. Rule TM-31.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from numalign.model.hint import ProviderHints, TopologyHint
from numalign.topology.numa_info import Fitter


@dataclass(frozen=True, slots=True)
class Verdict:
    """The best hint, and whether the policy admits it.

    Not `proved`: the hint is as wide and as preferred as the best is, but whether another of
    that width is better could not be found out in time. `remote` names resources that come from
    elsewhere, where that was decided on purpose.
    """

    best: TopologyHint
    admitted: bool
    proved: bool = True
    remote: tuple[str, ...] = ()


class Policy(Protocol):
    """A topology policy. Pure: the same answers give the same verdict."""

    @property
    def name(self) -> str:
        """The policy's name in the configuration."""

    @property
    def alignment_guaranteed(self) -> bool:
        """Whether what is admitted always sits on one NUMA node (TM-38)."""

    def accepts(self, hint: TopologyHint) -> bool:
        """Whether a resource that takes this hint can be part of an aligned result."""

    def decide(self, answers: Sequence[ProviderHints], order: Fitter | None = None) -> Verdict:
        """Merge what the providers answered, in provider order.

        `order` says how equally wide masks compare in this merge; None: as the policy has them.
        Raises MissingDistance where the machine lacks a distance that decides (TM-10), and
        Undecided where described hints are too hard to merge.
        """
