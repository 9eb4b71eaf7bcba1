"""What a memory policy decides; the engine around it does everything that no policy changes."""

from __future__ import annotations

from typing import Protocol

from numalign.memory.eligibility import Request
from numalign.memory.state import MemoryState
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Allocated
from numalign.provider.values import ResourceFacts


class MemoryPolicy(Protocol):
    """Hints and allocations over a state that holds nothing stale."""

    @property
    def name(self) -> str:
        """`None` or `Static`."""

    def requested(self, pod: Pod, container: Container | None) -> Request | None:
        """The bytes placed for a container, or (None) the pod; None where there are none."""

    def topology_hints(self, state: MemoryState, pod: Pod, container: Container) -> ProviderHints:
        """Hints for one container."""

    def pod_topology_hints(self, state: MemoryState, pod: Pod) -> ProviderHints:
        """Hints for the pod as a whole."""

    def facts(self, state: MemoryState, pod: Pod, request: Request) -> tuple[ResourceFacts, ...]:
        """What stands behind the hints for `request`."""

    def allocate(
        self, state: MemoryState, pod: Pod, container: Container, affinity: TopologyHint
    ) -> Allocated[MemoryState]:
        """Book what one container asks for."""

    def allocate_pod(
        self, state: MemoryState, pod: Pod, affinity: TopologyHint
    ) -> Allocated[MemoryState]:
        """Book what the pod asks for, and share it out among its containers."""
