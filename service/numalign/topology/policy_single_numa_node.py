"""Policy `single-numa-node`: everything on one NUMA node, or no admission. Rules TM-36..TM-38."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.families.offers import offer_of
from numalign.families.single_node import kept_hints
from numalign.model.hint import FamilyList, ProviderHints, TopologyHint
from numalign.topology.merge import check_grounds, merge
from numalign.topology.normalise import StatedList, normalise
from numalign.topology.numa_info import Fitter, NumaInfo, narrowest
from numalign.topology.policy import Verdict

NAME = "single-numa-node"


@dataclass(frozen=True, slots=True)
class SingleNumaNodePolicy:
    """Success is one node, or no affinity where every node will do (TM-37).

    Distances never count: two different single nodes are as narrow as each other.
    """

    numa: NumaInfo
    name: str = NAME
    alignment_guaranteed: bool = True

    def accepts(self, hint: TopologyHint) -> bool:
        """A preferred one that names one node, or none at all."""
        return hint.preferred and (hint.mask is None or hint.mask.bit_count() == 1)

    def decide(self, answers: Sequence[ProviderHints], order: Fitter | None = None) -> Verdict:
        """Merge the hints it accepts; a list that loses all of them makes the merge fail."""
        lists = [self._accepted(hints) for hints in normalise(answers)]
        best = merge(lists, self.numa.default_mask, order or narrowest)
        if best.mask == self.numa.default_mask:
            best = TopologyHint(None, best.preferred)
        return Verdict(best, best.preferred)

    def _accepted(self, hints: StatedList) -> list[TopologyHint]:
        if isinstance(hints, FamilyList):
            check_grounds((hints,), self.numa.default_mask)
            return kept_hints(offer_of(hints), self.numa.default_mask)
        return [hint for hint in hints if self.accepts(hint)]
