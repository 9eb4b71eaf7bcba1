"""What the record says of pods, as a provider is told it to take it back.

Separate from settling, which says which pods that are: this is their way onto the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from numalign.topology.agreement import shown_by, whole_shown_by
from numalign.topology.records import Admitted
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

_BATCH_BYTES = 1 << 20
"""How much of the record goes into one message; gRPC takes 4 MiB."""


def recorded_pod(
    provider: str, admitted: Admitted, finished: frozenset[str], *, with_pod: bool
) -> hp.RecordedPod:
    """The provider's part of a pod; `finished` init containers have given back theirs.

    `with_pod`: it is to be said what the pod asks for and does not hold.
    """
    record = admitted.message
    return hp.RecordedPod(
        pod_uid=record.pod_uid,
        allocations=[shown_by(provider, allocation) for allocation in _apps_first(record)],
        pod_allocation=whole_shown_by(provider, record.pod_allocation),
        finished_containers=sorted(finished),
        pod=admitted.pod if with_pod else b"",
    )


def is_wide(recorded: hp.RecordedPod) -> bool:
    """Whether the pod has memory over several nodes: it finds room where the others leave it."""
    blocks = (*recorded.pod_allocation.memory, *(b for a in recorded.allocations for b in a.memory))
    return any(len(block.numa_nodes) > 1 for block in blocks)


def batches(pods: Iterable[hp.RecordedPod]) -> Iterator[list[hp.RecordedPod]]:
    """The pods in their order, as many at a time as go well into one message."""
    batch: list[hp.RecordedPod] = []
    size = 0
    for pod in pods:
        batch.append(pod)
        size += pod.ByteSize()
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _apps_first(record: pb.AdmissionRecord) -> list[pb.ContainerAllocation]:
    """What runs on comes before what has ended or will end."""
    ending = {c.name for c in record.containers if c.kind == pb.CONTAINER_KIND_INIT}
    return sorted(record.allocations, key=lambda allocation: allocation.container in ending)
