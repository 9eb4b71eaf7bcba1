"""A pod as the admit handlers see it: its resources, and what else they look at.

Separate from `model.Pod`, which is what placement needs and what is compared when a pod is
presented again: labels, tolerations or a phase change nothing about a placement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.kubelet_files.allocation_checkpoint import ClaimReference
from numalign.model.pod import Pod, Resources
from numalign.model.quantity import Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A taint that a pod puts up with; empty fields as in the pod API (PRED-15)."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One requirement on a label or a field of a node (PRED-13)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerm:
    """Requirements that must all hold; one without any matches nothing (PRED-13)."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the host that a container takes; ip and protocol with defaults (PRED-14)."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class AppArmorProfile:
    """A profile; `localhost_profile` None where the field is absent (ARM-5)."""

    type: str
    localhost_profile: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStatus:
    """What a status says of a container's resources; None where it says nothing (PRED-7)."""

    actuated: Mapping[str, Quantity] | None = None
    allocated: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeStatus:
    """What a pod's status says about its resources.

    `containers` are regular and init containers by name. `pod_actuated` is None where the
    status has no pod-level resources. `infeasible`: condition PodResizePending, Infeasible.
    """

    containers: Mapping[str, ContainerStatus] = field(default_factory=dict)
    pod_actuated: Mapping[str, Quantity] | None = None
    pod_allocated: Mapping[str, Quantity] = field(default_factory=dict)
    infeasible: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitPod:
    """One pod.

    `node_terms` None means that no node affinity is required. `os_name`, `host_users` and
    `priority` are None where the pod does not say. `app_armor` holds the profiles of init,
    regular and ephemeral containers in that order, None for a container without. `claims`
    are those of each container that has some, `restart_on_memory` the containers that a
    change of their memory restarts.
    """

    pod: Pod
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    generation: int = 0
    priority: int | None = None
    phase: str = ""
    node_name: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_terms: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    os_name: str | None = None
    supplemental_groups_policy: str = ""
    host_network: bool = False
    host_ipc: bool = False
    host_users: bool | None = None
    sysctls: tuple[str, ...] = ()
    pod_app_armor: AppArmorProfile | None = None
    app_armor: tuple[tuple[str, AppArmorProfile | None], ...] = ()
    restarts_all_containers: bool = False
    claims: Mapping[str, tuple[ClaimReference, ...]] = field(default_factory=dict)
    restart_on_memory: frozenset[str] = frozenset()
    status: ResizeStatus = field(default_factory=ResizeStatus)

    @property
    def uid(self) -> str:
        """The pod's UID."""
        return self.pod.uid

    @property
    def pod_level(self) -> Resources | None:
        """The pod-level resources; None if the spec has no such section."""
        return self.pod.resources
