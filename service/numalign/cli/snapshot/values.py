"""A node at one moment, as everything that looks at nodes takes it.

Separate from asking for it and from its file: what draws or simulates a node does not care
whether the node runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numalign.cli.tables.ownership import Books
from numalign.machine.schema import machine_from_document
from numalign.model.machine import Machine
from numalign.v1 import control_pb2 as ct
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb
from numalign.v1.node_resources_pb2 import NodeResources


@dataclass(frozen=True, slots=True)
class AdmittedPod:
    """An admitted pod: its record, and the pod itself, the bytes of a v1.Pod."""

    record: pb.AdmissionRecord
    pod: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSnapshot:
    """A node. `taken` is a time in RFC 3339; books are None where a provider did not answer.

    `configuration` is a KubeletConfiguration with its `numalign` section, every default written
    out and the machine inline.
    """

    taken: str
    node: str
    configuration: Mapping[str, object]
    revision: int
    admissions: tuple[AdmittedPod, ...]
    shared_cpus: str
    resources: NodeResources
    providers: tuple[tm.HintProviderStatus, ...] = ()
    services: Mapping[str, ct.GetStatusResponse]
    decisions: tuple[dc.DecisionRecord, ...] = ()
    cpu: hp.CpuState | None = None
    memory: hp.MemoryState | None = None
    device: hp.DeviceState | None = None

    @property
    def machine(self) -> Machine:
        """The machine. Raises DocumentError where the configuration has none that is one."""
        section = self.configuration.get("numalign")
        machine = section.get("machine") if isinstance(section, Mapping) else None
        return machine_from_document(machine, "configuration.numalign.machine")

    @property
    def names(self) -> dict[str, str]:
        """Pods by uid: those that are admitted, and those that decisions are about."""
        names = {d.pod_uid: f"{d.namespace}/{d.name}" for d in self.decisions}
        for record in (admitted.record for admitted in self.admissions):
            names[record.pod_uid] = f"{record.namespace}/{record.name}"
        return names

    @property
    def books(self) -> Books:
        """What providers have on their books."""
        return Books(pods=self.names, cpu=self.cpu, memory=self.memory, device=self.device)
