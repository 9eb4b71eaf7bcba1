"""Policy `none`: placement does not matter, everything is admitted. Rule TM-32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.model.hint import NO_HINT, ProviderHints, TopologyHint
from numalign.topology.numa_info import Fitter
from numalign.topology.policy import Verdict

NAME = "none"


@dataclass(frozen=True, slots=True)
class NonePolicy:
    """Looks at no hint. Its scope does not ask for any either (TM-40)."""

    name: str = NAME
    alignment_guaranteed: bool = False

    def accepts(self, hint: TopologyHint) -> bool:  # noqa: ARG002 - every hint will do
        """Always."""
        return True

    def decide(
        self,
        answers: Sequence[ProviderHints],  # noqa: ARG002 - as above
        order: Fitter | None = None,  # noqa: ARG002 - as above
    ) -> Verdict:
        """No affinity, admitted."""
        return Verdict(NO_HINT, True)
