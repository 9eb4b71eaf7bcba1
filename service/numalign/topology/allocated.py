"""What a pod is allocated: as a record tells it, put over a pod, and kept while it is resized.

Separate from deciding and recording: these are functions over messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_decode import parse_pod
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Pod, Resources
from numalign.model.pod_change import is_resizable
from numalign.model.quantity import Quantity
from numalign.topology.agreement import giver_of
from numalign.topology.claim_record import keep_claims
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

_SIDECAR = "Always"


def resources_to_message(pod: Pod, gates: FeatureGates) -> pb.PodResources:
    """What a pod that is admitted as it stands is allocated (ALLOC-5)."""
    message = pb.PodResources(
        containers=[
            pb.ContainerResources(
                container=container.name, amounts=_amounts_to_message(container.resources)
            )
            for container in pod.all_containers()
            if is_resizable(container, gates)
        ]
    )
    if pod.resources is not None and gates.in_place_pod_level_resources_vertical_scaling:
        message.pod.CopyFrom(_amounts_to_message(pod.resources))
    return message


def as_allocated(data: bytes, recorded: bytes, gates: FeatureGates) -> bytes:
    """The pod in `data` with the resources of the pod as it is recorded (ALLOC-6).

    Whole sections are replaced, by container name. Raises InvalidInput for bytes that are no
    pod.
    """
    pod, known = parse_pod(data), parse_pod(recorded)
    entries = {container.name: container for container in _resizable(known.spec, gates)}
    for container in _resizable(pod.spec, gates):
        entry = entries.get(container.name)
        if entry is None:
            continue
        container.ClearField("resources")
        if entry.HasField("resources"):
            container.resources.CopyFrom(entry.resources)
    if gates.in_place_pod_level_resources_vertical_scaling:
        pod.spec.ClearField("resources")
        if known.spec.HasField("resources"):
            pod.spec.resources.CopyFrom(known.spec.resources)
    return pod.SerializeToString()


def changed_claims(before: bytes, after: bytes) -> str | None:
    """Path of the first list of claims that differs; None if there is none.

    The pods have the same containers. An image may differ: it is changed in place like the
    resources, and nothing is placed by it. Raises InvalidInput for bytes that are no pod.
    """
    old, new = parse_pod(before).spec, parse_pod(after).spec
    for path, pairs in (
        ("spec.initContainers", zip(old.init_containers, new.init_containers, strict=True)),
        ("spec.containers", zip(old.containers, new.containers, strict=True)),
    ):
        for index, (one, other) in enumerate(pairs):
            if list(one.resources.claims) != list(other.resources.claims):
                return f"{path}[{index}].resources.claims"
    return None


def keep_what_was_not_asked(
    allocations: Iterable[pb.ContainerAllocation],
    before: pb.AdmissionRecord,
    left_out: Collection[str],
) -> None:
    """Complete what containers hold after a resize by what nobody was asked about.

    That is the devices of the providers of the names `left_out`, the affinity of containers
    that were not judged again, and resource claims.
    """
    known = {allocation.container: allocation for allocation in before.allocations}
    for allocation in allocations:
        held = known.get(allocation.container)
        if held is None:
            continue
        allocation.devices.extend(device for device in held.devices if giver_of(device) in left_out)
        keep_claims(allocation, held)
        if held.HasField("affinity") and not allocation.HasField("affinity"):
            allocation.affinity.CopyFrom(held.affinity)


def holds_the_same(before: pb.AdmissionRecord, after: ad.AdmitResponse) -> bool:
    """Whether an answer gives a pod the CPUs, memory and devices that are recorded."""
    return _held(before) == _held(after) and before.pod_allocation == after.pod_allocation


def holds_cpus_or_memory(record: pb.AdmissionRecord) -> bool:
    """Whether a pod holds CPUs or memory of its own, a container's or the pod's."""
    whole = record.pod_allocation
    return bool(whole.cpus or whole.memory) or any(a.cpus or a.memory for a in record.allocations)


def _held(of: pb.AdmissionRecord | ad.AdmitResponse) -> dict[str, pb.ContainerAllocation]:
    held = {}
    for allocation in of.allocations:
        if allocation.cpus or allocation.memory or allocation.devices:
            plain = pb.ContainerAllocation()
            plain.CopyFrom(allocation)
            plain.ClearField("affinity")
            held[allocation.container] = plain
    return held


def _resizable(spec: core_pb2.PodSpec, gates: FeatureGates) -> Iterator[core_pb2.Container]:
    """The containers whose resources can change while the pod lives, init containers first."""
    with_ordinary = gates.in_place_pod_vertical_scaling_init_containers
    for container in spec.init_containers:
        if with_ordinary or container.restart_policy == _SIDECAR:
            yield container
    yield from spec.containers


def _amounts_to_message(resources: Resources) -> pb.ResourceAmounts:
    return pb.ResourceAmounts(requests=_texts(resources.requests), limits=_texts(resources.limits))


def _texts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: quantity.canonical() for name, quantity in amounts.items()}
