"""Between pod and node messages and what the admit handlers see of them.

Separate from `kube.pod_decode`, which reads what placement needs and checks it: here a pod has
passed those checks, and labels, tolerations or a status are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from numalign.admission.handlers.admit_pod import (
    AdmitPod,
    AppArmorProfile,
    ContainerStatus,
    HostPort,
    NodeTerm,
    Requirement,
    ResizeStatus,
    Toleration,
)
from numalign.admission.handlers.node_view import NodeView, Taint
from numalign.errors import InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.kube.violations import invalid
from numalign.kubelet_files.allocation_checkpoint import (
    AllocatedResources,
    ClaimReference,
    PodAllocation,
)
from numalign.model.pod import Pod
from numalign.model.quantity import Quantity, QuantitySyntaxError
from numalign.v1 import types_pb2 as pb

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the API's word for every address, nothing is bound to it
_RESIZE_PENDING, _INFEASIBLE = "PodResizePending", "Infeasible"
_RESTART_ALL = "RestartAllContainers"


def admit_pod(message: core_pb2.Pod, pod: Pod) -> AdmitPod:
    """What the admit handlers see of a pod; `pod` is the same one as placement reads it.

    Raises InvalidInput for a status whose amounts cannot be read.
    """
    metadata, spec, security = message.metadata, message.spec, message.spec.security_context
    return AdmitPod(
        pod=pod,
        labels=dict(metadata.labels),
        annotations=dict(metadata.annotations),
        generation=metadata.generation,
        priority=spec.priority if spec.HasField("priority") else None,
        phase=message.status.phase,
        node_name=spec.node_name,
        node_selector=dict(spec.node_selector),
        node_terms=_node_terms(spec),
        tolerations=tuple(
            Toleration(key=t.key, operator=t.operator, value=t.value, effect=t.effect)
            for t in spec.tolerations
        ),
        host_ports=tuple(_host_ports(spec)),
        os_name=spec.os.name if spec.HasField("os") else None,
        supplemental_groups_policy=security.supplemental_groups_policy,
        host_network=spec.host_network,
        host_ipc=spec.host_ipc,
        host_users=spec.host_users if spec.HasField("host_users") else None,
        sysctls=tuple(sysctl.name for sysctl in security.sysctls),
        pod_app_armor=_profile(security),
        app_armor=_app_armor(spec),
        restarts_all_containers=any(
            rule.action == _RESTART_ALL
            for container in (*spec.init_containers, *spec.containers)
            for rule in container.restart_policy_rules
        ),
        claims={
            container.name: tuple(
                ClaimReference(name=claim.name, request=claim.request)
                for claim in container.resources.claims
            )
            for container in (*spec.init_containers, *spec.containers)
            if container.resources.claims
        },
        restart_on_memory=frozenset(
            container.name
            for container in (*spec.init_containers, *spec.containers)
            if _restarts_on_memory(container)
        ),
        status=resize_status(message.status),
    )


def node_view(message: core_pb2.Node) -> NodeView:
    """What the predicates see of a Node object; InvalidInput for amounts that are none."""
    return NodeView(
        name=message.metadata.name,
        labels=dict(message.metadata.labels),
        taints=tuple(
            Taint(key=taint.key, value=taint.value, effect=taint.effect)
            for taint in message.spec.taints
        ),
        allocatable=_amounts(message.status.allocatable, "status", ".allocatable"),
        supplemental_groups_policy=message.status.features.supplemental_groups_policy,
    )


def resize_status(status: core_pb2.PodStatus) -> ResizeStatus:
    """What a status says about the pod's resources; InvalidInput for amounts that are none."""
    containers = {}
    for path, messages in (
        ("status.containerStatuses", status.container_statuses),
        ("status.initContainerStatuses", status.init_container_statuses),
    ):
        for message in messages:
            containers[message.name] = ContainerStatus(
                actuated=_amounts(message.resources.requests, path, ".resources.requests")
                if message.HasField("resources")
                else None,
                allocated=_amounts(message.allocated_resources, path, ".allocatedResources"),
            )
    return ResizeStatus(
        containers=containers,
        pod_actuated=_amounts(status.resources.requests, "status", ".resources.requests")
        if status.HasField("resources")
        else None,
        pod_allocated=_amounts(status.allocated_resources, "status", ".allocatedResources"),
        infeasible=any(
            condition.type == _RESIZE_PENDING and condition.reason == _INFEASIBLE
            for condition in status.conditions
        ),
    )


def allocation_from_message(resources: pb.PodResources, pod: AdmitPod) -> PodAllocation:
    """What a pod is allocated, as a record or an answer tells it; claims are those of `pod`.

    Claims never change, so the record leaves them out. Raises InvalidInput for amounts that
    are none.
    """
    return PodAllocation(
        containers={
            entry.container: AllocatedResources(
                requests=_quantities(entry.amounts.requests, entry.container),
                limits=_quantities(entry.amounts.limits, entry.container),
                claims=pod.claims.get(entry.container, ()),
            )
            for entry in resources.containers
        },
        pod_level=AllocatedResources(
            requests=_quantities(resources.pod.requests, "pod"),
            limits=_quantities(resources.pod.limits, "pod"),
        )
        if resources.HasField("pod")
        else None,
    )


def with_resources(message: core_pb2.Pod, pod: AdmitPod) -> core_pb2.Pod:
    """The message with the resources and claims of `pod`; everything else is left as it is."""
    copy = core_pb2.Pod()
    copy.CopyFrom(message)
    for container in (*copy.spec.init_containers, *copy.spec.containers):
        resources = pod.pod.container(container.name).resources
        claims = pod.claims.get(container.name, ())
        if not (resources.requests or resources.limits or claims):
            container.ClearField("resources")
            continue
        _write(container.resources, resources.requests, resources.limits)
        for claim in claims:
            container.resources.claims.add(name=claim.name, request=claim.request)
    if pod.pod_level is None:
        copy.spec.ClearField("resources")
    else:
        copy.spec.resources.SetInParent()
        _write(copy.spec.resources, pod.pod_level.requests, pod.pod_level.limits)
    return copy


def _write(
    section: core_pb2.ResourceRequirements,
    requests: Mapping[str, Quantity],
    limits: Mapping[str, Quantity],
) -> None:
    section.Clear()
    for name, quantity in requests.items():
        section.requests[name].string = quantity.canonical()
    for name, quantity in limits.items():
        section.limits[name].string = quantity.canonical()


def _node_terms(spec: core_pb2.PodSpec) -> tuple[NodeTerm, ...] | None:
    affinity = spec.affinity.node_affinity
    if not affinity.HasField("required_during_scheduling_ignored_during_execution"):
        return None
    required = affinity.required_during_scheduling_ignored_during_execution
    return tuple(
        NodeTerm(
            labels=_requirements(term.match_expressions), fields=_requirements(term.match_fields)
        )
        for term in required.node_selector_terms
    )


def _requirements(
    messages: Iterable[core_pb2.NodeSelectorRequirement],
) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(key=m.key, operator=m.operator, values=tuple(m.values)) for m in messages
    )


def _host_ports(spec: core_pb2.PodSpec) -> Iterable[HostPort]:
    """Host ports of regular containers and sidecars (PRED-14)."""
    sidecars = (c for c in spec.init_containers if c.restart_policy == "Always")
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            if port.host_port > 0:
                yield HostPort(port.host_ip or _ANY_ADDRESS, port.protocol or "TCP", port.host_port)


def _app_armor(spec: core_pb2.PodSpec) -> tuple[tuple[str, AppArmorProfile | None], ...]:
    profiles = [
        (container.name, _profile(container.security_context))
        for container in (*spec.init_containers, *spec.containers)
    ]
    profiles += [
        (common.name, _profile(common.security_context))
        for common in (e.ephemeral_container_common for e in spec.ephemeral_containers)
    ]
    return tuple(profiles)


def _profile(
    context: core_pb2.PodSecurityContext | core_pb2.SecurityContext,
) -> AppArmorProfile | None:
    if not context.HasField("app_armor_profile"):
        return None
    profile = context.app_armor_profile
    return AppArmorProfile(
        profile.type,
        profile.localhost_profile if profile.HasField("localhost_profile") else None,
    )


def _restarts_on_memory(container: core_pb2.Container) -> bool:
    """Whether the first entry for memory asks for a restart (RSZ-3)."""
    for entry in container.resize_policy:
        if entry.resource_name == "memory":
            return entry.restart_policy == "RestartContainer"
    return False


def _amounts(amounts: Mapping[str, core_pb2.Quantity], path: str, key: str) -> dict[str, Quantity]:
    """Amounts as they stand: how the API limits them is not checked again."""
    return _quantities({name: amount.string for name, amount in amounts.items()}, f"{path}{key}")


def _quantities(amounts: Mapping[str, str], path: str) -> dict[str, Quantity]:
    read: dict[str, Quantity] = {}
    for name, text in amounts.items():
        try:
            read[name] = Quantity.parse(text)
        except QuantitySyntaxError as error:
            raise InvalidInput(invalid(f"{path}[{name}]", text, str(error))) from error
    return read
