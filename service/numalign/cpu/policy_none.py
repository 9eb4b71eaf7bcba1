"""The policy that leaves CPUs alone: no hints, no allocation, no shared set. Rule CPU-46."""

from __future__ import annotations

from numalign.cpu.state import CpuState
from numalign.model.hint import ProviderHints
from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Allocated, Lost
from numalign.provider.values import ResourceFacts


class NonePolicy:
    """Decisions of the policy `none`."""

    name = "none"
    resources: tuple[str, ...] = ()

    def container_hints(
        self,
        state: CpuState,  # noqa: ARG002 - the same call for every policy
        pod: Pod,  # noqa: ARG002 - as above
        container: Container,  # noqa: ARG002 - as above
    ) -> ProviderHints:
        """No mapping at all."""
        return None

    def pod_hints(
        self,
        state: CpuState,  # noqa: ARG002 - the same call for every policy
        pod: Pod,  # noqa: ARG002 - as above
    ) -> ProviderHints:
        """No mapping at all."""
        return None

    def allocate(
        self,
        state: CpuState,
        pod: Pod,  # noqa: ARG002 - the same call for every policy
        container: Container,  # noqa: ARG002 - as above
        affinity: NumaMask | None,  # noqa: ARG002 - as above
    ) -> Allocated[CpuState]:
        """Success, and nothing taken."""
        return Allocated(state)

    def allocate_pod(
        self,
        state: CpuState,
        pod: Pod,  # noqa: ARG002 - the same call for every policy
        affinity: NumaMask | None,  # noqa: ARG002 - as above
    ) -> Allocated[CpuState]:
        """Success, and nothing taken."""
        return Allocated(state)

    def missing(
        self,
        state: CpuState,  # noqa: ARG002 - the same call for every policy
        pod: Pod,  # noqa: ARG002 - as above
        finished: frozenset[str],  # noqa: ARG002 - as above
    ) -> tuple[Lost, ...]:
        """Nothing: no CPU is exclusive."""
        return ()

    def facts(
        self,
        state: CpuState,  # noqa: ARG002 - the same call for every policy
        pod: Pod,  # noqa: ARG002 - as above
        container: Container | None,  # noqa: ARG002 - as above
    ) -> tuple[ResourceFacts, ...]:
        """Nothing: no CPU was looked at."""
        return ()
