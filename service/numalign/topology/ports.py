"""What a scope needs from the hint providers, whoever and wherever they are.

Separate from the scopes so that they can be driven by fakes, by engines in the same process
and by services behind sockets alike. Rule TM-18.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.pod import Container, Pod
from numalign.provider.values import AllocationFailure, ResourceFacts


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What one provider answered to one request for hints."""

    provider: str
    hints: ProviderHints


class Providers(Protocol):
    """All hint providers of one admission, asked as one.

    Answers and failures are in provider order, however the providers are called. `last`
    marks the last allocation of the admission: after it, what was taken can be made durable.
    """

    async def topology_hints(self, pod: Pod, container: Container) -> tuple[ProviderAnswer, ...]:
        """Hints for one container, as things stand after the allocations made so far."""

    async def pod_topology_hints(self, pod: Pod) -> tuple[ProviderAnswer, ...]:
        """Hints for the pod as a whole."""

    async def amounts(self, pod: Pod, container: Container | None) -> tuple[ResourceFacts, ...]:
        """What stands behind the hints for a container, or (None) for the pod."""

    async def allocate(
        self, pod: Pod, container: Container, affinity: TopologyHint, last: bool
    ) -> AllocationFailure | None:
        """Take what the container asks for; the first failure in provider order, or None."""

    async def allocate_pod(
        self, pod: Pod, affinity: TopologyHint, last: bool
    ) -> AllocationFailure | None:
        """Take what the pod as a whole asks for; the first failure, or None."""
