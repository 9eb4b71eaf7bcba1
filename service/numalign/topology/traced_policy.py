"""A policy whose merges are spans. Put around the real one where spans are recorded.

Separate from the policies, which are pure and know no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numalign.model.hint import ProviderHints, TopologyHint
from numalign.telemetry import attributes
from numalign.telemetry.spans import AttributeValue, Tracer
from numalign.topology.numa_info import Fitter
from numalign.topology.policy import Policy, Verdict
from numalign.topology.scope import Scope
from numalign.topology.scope_container import ContainerScope
from numalign.topology.scope_pod import PodScope


def traced_scope(scope: Scope, tracer: Tracer) -> Scope:
    """The same scope with a span around every merge; scope `none` merges nothing."""
    if isinstance(scope, ContainerScope | PodScope):
        return replace(scope, policy=TracedPolicy(scope.policy, tracer))
    return scope


class TracedPolicy:
    """Decides as `policy` does."""

    def __init__(self, policy: Policy, tracer: Tracer) -> None:
        self._policy = policy
        self._tracer = tracer

    @property
    def name(self) -> str:
        """The policy's name in the configuration."""
        return self._policy.name

    @property
    def alignment_guaranteed(self) -> bool:
        """Whether what is admitted always sits on one NUMA node (TM-38)."""
        return self._policy.alignment_guaranteed

    def accepts(self, hint: TopologyHint) -> bool:
        """Whether a resource that takes this hint can be part of an aligned result."""
        return self._policy.accepts(hint)

    def decide(self, answers: Sequence[ProviderHints], order: Fitter | None = None) -> Verdict:
        """Merge what the providers answered, in a span."""
        about: dict[str, AttributeValue] = {
            attributes.PROVIDERS: len(answers),
            attributes.HINTS: attributes.hints_text(answers),
        }
        with self._tracer.inner("merge", about) as span:
            verdict = self._policy.decide(answers, order)
            for name, value in attributes.affinity_attributes(verdict.best).items():
                span.set_attribute(name, value)
            span.set_attribute(attributes.POLICY_ADMITTED, verdict.admitted)
        return verdict
