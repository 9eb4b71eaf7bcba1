"""Policy `best-effort`: steer to the best hint there is, admit in any case. Rule TM-33."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.model.hint import ProviderHints, TopologyHint
from numalign.topology.merge import merge_stated
from numalign.topology.normalise import normalise
from numalign.topology.numa_info import Fitter, NumaInfo
from numalign.topology.policy import Verdict

NAME = "best-effort"


@dataclass(frozen=True, slots=True)
class BestEffortPolicy:
    """Its best hint always has a mask, at worst that of all nodes (TM-35)."""

    numa: NumaInfo
    fitter: Fitter
    name: str = NAME
    alignment_guaranteed: bool = False

    def accepts(self, hint: TopologyHint) -> bool:
        """A preferred one: with less a pod is admitted, but not aligned."""
        return hint.preferred

    def decide(self, answers: Sequence[ProviderHints], order: Fitter | None = None) -> Verdict:
        """The merged hint, admitted."""
        lists = normalise(answers)
        merged = merge_stated(lists, self.numa.default_mask, order or self.fitter)
        return Verdict(merged.best, True, merged.proved)
