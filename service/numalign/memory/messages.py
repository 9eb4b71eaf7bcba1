"""The memory provider's books as messages."""

from __future__ import annotations

from numalign.memory.engine import MemoryEngine
from numalign.memory.state import MemoryState
from numalign.provider.messages import block_to_message
from numalign.v1 import hint_provider_pb2 as hp


class MemoryBooks:
    """Translates the state of one engine; see `numalign.provider.servicer.Books`."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def state_message(self, state: MemoryState) -> hp.GetStateResponse:
        """The tables of every NUMA node and the blocks of every container."""
        return hp.GetStateResponse(
            memory=hp.MemoryState(
                policy=self._engine.policy_name,
                nodes=[
                    hp.NumaNodeMemory(
                        numa_node=node_id,
                        number_of_assignments=node.assignments,
                        cells=node.cells,
                        tables=[
                            hp.MemoryTable(
                                resource=resource,
                                total=table.total,
                                system_reserved=table.system_reserved,
                                allocatable=table.allocatable,
                                reserved=table.reserved,
                                free=table.free,
                            )
                            for resource, table in sorted(node.tables.items())
                        ],
                    )
                    for node_id, node in sorted(state.machine.items())
                ],
                assignments=[
                    hp.MemoryAssignment(
                        pod_uid=pod_uid,
                        container=name,
                        blocks=[block_to_message(block) for block in blocks],
                    )
                    for pod_uid, containers in sorted(state.containers.items())
                    for name, blocks in sorted(containers.items())
                ],
                pods=[
                    hp.PodMemory(
                        pod_uid=pod_uid, blocks=[block_to_message(block) for block in blocks]
                    )
                    for pod_uid, blocks in sorted(state.pods.items())
                ],
            )
        )

    def unhealthy_message(self, state: MemoryState) -> None:
        """Nothing: these books are about memory."""

    def allocatable_message(
        self,
        state: MemoryState,  # noqa: ARG002 - fixed at start (MEM-57)
    ) -> hp.GetAllocatableResourcesResponse:
        """Memory that can be given out, by node and resource."""
        return hp.GetAllocatableResourcesResponse(
            memory=[block_to_message(block) for block in self._engine.allocatable]
        )
