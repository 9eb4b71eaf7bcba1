"""The None policy: memory is never placed (MEM-2)."""

from __future__ import annotations

from numalign.memory.eligibility import Request
from numalign.memory.state import MemoryState
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Allocated
from numalign.provider.values import ResourceFacts

NAME = "None"


class NonePolicy:
    """No preference for anything, and nothing booked."""

    name = NAME

    def requested(
        self,
        pod: Pod,  # noqa: ARG002 - the protocol's signature
        container: Container | None,  # noqa: ARG002
    ) -> Request | None:
        """Nothing is placed."""
        return None

    def topology_hints(
        self,
        state: MemoryState,  # noqa: ARG002 - the protocol's signature
        pod: Pod,  # noqa: ARG002
        container: Container,  # noqa: ARG002
    ) -> ProviderHints:
        """No mapping at all."""
        return None

    def pod_topology_hints(
        self,
        state: MemoryState,  # noqa: ARG002 - the protocol's signature
        pod: Pod,  # noqa: ARG002
    ) -> ProviderHints:
        """No mapping at all."""
        return None

    def facts(
        self,
        state: MemoryState,  # noqa: ARG002 - the protocol's signature
        pod: Pod,  # noqa: ARG002
        request: Request,  # noqa: ARG002
    ) -> tuple[ResourceFacts, ...]:
        """Nothing stands behind no hints."""
        return ()

    def allocate(
        self,
        state: MemoryState,
        pod: Pod,  # noqa: ARG002 - the protocol's signature
        container: Container,  # noqa: ARG002
        affinity: TopologyHint,  # noqa: ARG002
    ) -> Allocated[MemoryState]:
        """Always succeeds without a record."""
        return Allocated(state)

    def allocate_pod(
        self,
        state: MemoryState,
        pod: Pod,  # noqa: ARG002 - the protocol's signature
        affinity: TopologyHint,  # noqa: ARG002
    ) -> Allocated[MemoryState]:
        """Always succeeds without a record."""
        return Allocated(state)
