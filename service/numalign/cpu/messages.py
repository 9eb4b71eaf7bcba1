"""The CPU provider's books as messages."""

from __future__ import annotations

from numalign.cpu.engine import CpuEngine
from numalign.cpu.node_numbers import NodeCpus, managed_nodes, unmanaged_nodes
from numalign.cpu.policy_static import StaticPolicy
from numalign.cpu.state import CpuState
from numalign.v1 import hint_provider_pb2 as hp


class CpuBooks:
    """Translates the state of one engine; see `numalign.provider.servicer.Books`."""

    def __init__(self, engine: CpuEngine) -> None:
        self._engine = engine

    def state_message(self, state: CpuState) -> hp.GetStateResponse:
        """Shared, reserved and exclusive CPUs."""
        return hp.GetStateResponse(
            cpu=hp.CpuState(
                policy=self._engine.policy.name,
                default_cpus=str(state.default),
                reserved_cpus=str(self._engine.reserved),
                all_cpus=str(self._engine.all_cpus),
                assignments=[
                    hp.CpuAssignment(pod_uid=pod_uid, container=name, cpus=str(cpus))
                    for pod_uid, containers in sorted(state.assignments.items())
                    for name, cpus in sorted(containers.items())
                ],
                pods=[
                    hp.PodCpus(pod_uid=pod_uid, cpus=str(cpus))
                    for pod_uid, cpus in sorted(state.pod_sets.items())
                ],
                nodes=[
                    hp.CpuNode(
                        numa_node=node.node,
                        cpus=str(node.cpus),
                        free=str(node.free),
                        largest=node.largest,
                    )
                    for node in self._nodes(state)
                ],
            )
        )

    def unhealthy_message(self, state: CpuState) -> None:
        """Nothing: these books are about CPUs."""

    def allocatable_message(
        self,
        state: CpuState,  # noqa: ARG002 - the same in every state (CPU-21)
    ) -> hp.GetAllocatableResourcesResponse:
        """CPUs that can be exclusive."""
        return hp.GetAllocatableResourcesResponse(cpus=str(self._engine.allocatable))

    def _nodes(self, state: CpuState) -> tuple[NodeCpus, ...]:
        policy = self._engine.policy
        if isinstance(policy, StaticPolicy):
            return managed_nodes(policy.setup, state)
        return unmanaged_nodes(self._engine.topology)
