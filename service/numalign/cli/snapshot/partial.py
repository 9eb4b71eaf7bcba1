"""What a node has and what of it is free, as far as the providers that answered say so.

The Topology Manager tells all of it or, while a provider is down, nothing: who decides by it must
not take a part for the whole. People who look at a node are shown the part, and told what is
missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numalign.cli.snapshot.values import AdmittedPod
from numalign.config.settings import Service
from numalign.kube.pod_decode import decode_pod
from numalign.model.feature_gates import FeatureGates
from numalign.topology.node_resources.messages import node_resources
from numalign.topology.node_resources.shared_requests import shared_millicores
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1.node_resources_pb2 import NodeResources

_POD_LEVEL = "PodLevelResources"

NOT_SHOWN: Mapping[Service, str] = {
    Service.CPU: "who has which CPUs on the map, and which are free",
    Service.MEMORY: "who has which memory, and what of it is free",
    Service.DEVICE: "which devices there are, who has them, and which are free",
    Service.ADMISSION: "the last decisions",
}
"""What is missing while a service is down."""


def partial_resources(
    revision: int,
    admissions: Sequence[AdmittedPod],
    configuration: Mapping[str, object],
    books: Mapping[Service, hp.GetStateResponse],
) -> NodeResources:
    """The node by the books that are there; nothing is said of CPUs without those of theirs."""
    cpu = books.get(Service.CPU)
    memory = books.get(Service.MEMORY)
    device = books.get(Service.DEVICE)
    found = node_resources(
        revision,
        hp.CpuState() if cpu is None else cpu.cpu,
        hp.MemoryState() if memory is None else memory.memory,
        hp.DeviceState() if device is None else device.device,
        _shared(admissions, configuration),
    )
    if cpu is None:
        found.ClearField("cpus")
    return found


def _shared(admissions: Sequence[AdmittedPod], configuration: Mapping[str, object]) -> int:
    stated = configuration.get("featureGates")
    is_on = stated.get(_POD_LEVEL, True) if isinstance(stated, Mapping) else True
    gates = FeatureGates(pod_level_resources=bool(is_on))
    return sum(
        shared_millicores(
            decode_pod(admitted.pod),
            {a.container for a in admitted.record.allocations if a.cpus},
            gates,
            has_own_cpus=bool(admitted.record.pod_allocation.cpus),
        )
        for admitted in admissions
    )
