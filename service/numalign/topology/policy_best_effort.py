"""Policy `best-effort`: steer to the best hint there is, admit in any case. Rule TM-33."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.families.choices import offers_mask
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.topology.merge import merge_stated
from numalign.topology.normalise import normalise
from numalign.topology.numa_info import Fitter, NumaInfo
from numalign.topology.policy import Verdict

NAME = "best-effort"


@dataclass(frozen=True, slots=True)
class BestEffortPolicy:
    """Its best hint always has a mask, at worst that of all nodes (TM-35).

    `cpu_and_memory_first` goes beyond the kubelet: where no mask suits all resources, that of CPUs
    and memory is taken if there is one that suits these, whatever the others would rather have.
    """

    numa: NumaInfo
    fitter: Fitter
    cpu_and_memory_first: bool = False
    name: str = NAME
    alignment_guaranteed: bool = False

    def accepts(self, hint: TopologyHint) -> bool:
        """A preferred one: with less a pod is admitted, but not aligned."""
        return hint.preferred

    def decide(self, answers: Sequence[ProviderHints], order: Fitter | None = None) -> Verdict:
        """The merged hint, admitted."""
        order = order or self.fitter
        merged = merge_stated(normalise(answers), self.numa.default_mask, order)
        if self.cpu_and_memory_first and not merged.best.preferred:
            verdict = self._of_cpu_and_memory(answers, order)
            if verdict is not None:
                return verdict
        return Verdict(merged.best, True, merged.proved)

    def _of_cpu_and_memory(self, answers: Sequence[ProviderHints], order: Fitter) -> Verdict | None:
        own = [
            {name: hints for name, hints in (answer or {}).items() if _is_cpu_or_memory(name)}
            for answer in answers
        ]
        lists = normalise([mapping for mapping in own if mapping])
        if not lists:
            return None
        merged = merge_stated(lists, self.numa.default_mask, order)
        mask = merged.best.mask
        if mask is None or not merged.best.preferred:
            return None
        remote = tuple(
            name
            for answer in answers
            for name, hints in (answer or {}).items()
            if hints is not None and not offers_mask(hints, mask)
        )
        return Verdict(TopologyHint(mask, False), True, merged.proved, remote)


def _is_cpu_or_memory(resource: str) -> bool:
    return resource in {"cpu", "memory"} or resource.startswith("hugepages-")
