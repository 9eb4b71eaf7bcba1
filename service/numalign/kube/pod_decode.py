"""From the bytes or message of a v1.Pod to the pod that decisions are made on.

Everything wrong with a pod is found in one pass and named by its path, so that a caller
mends it once. Only what a decision reads is checked; the rest is the API server's business.
"""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import DecodeError

from numalign.errors import FieldViolation, InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.kube.names import check_label, check_subdomain, check_uid
from numalign.kube.resource_values import read_amounts, read_resources
from numalign.kube.violations import duplicate, required, too_long, unsupported
from numalign.model.ids import PodUid
from numalign.model.pod import Container, Pod

MAX_POD_BYTES = 1 << 20
"""The largest pod that is looked at; an API server's store takes no larger one."""

_RESTART_POLICIES = ("Always", "Never", "OnFailure")


def decode_pod(data: bytes) -> Pod:
    """The pod in the bytes of a v1.Pod.

    Raises InvalidInput naming every wrong field: bytes that are no pod or more than 1 MiB, no
    uid, no containers, a uid or names that no API server would give, container names missing
    or used twice, amounts that are unparsable, negative, or fractional where pieces are
    counted, requests that do not go with their limits, and an unknown restart policy of an
    init container. Name and namespace may be left out.
    """
    if len(data) > MAX_POD_BYTES:
        raise InvalidInput(too_long("pod", MAX_POD_BYTES))
    return _checked(parse_pod(data))


def parse_pod(data: bytes) -> core_pb2.Pod:
    """The message in the bytes of a v1.Pod; InvalidInput if they are none."""
    try:
        return core_pb2.Pod.FromString(data)
    except DecodeError as error:
        detail = "Invalid value: the bytes are not those of a v1.Pod"
        raise InvalidInput(FieldViolation("pod", detail)) from error


def pod_from_message(message: core_pb2.Pod) -> Pod:
    """The pod in a message; raises InvalidInput as `decode_pod` does."""
    if message.ByteSize() > MAX_POD_BYTES:
        raise InvalidInput(too_long("pod", MAX_POD_BYTES))
    return _checked(message)


def _checked(message: core_pb2.Pod) -> Pod:
    pod, violations = read_pod(message)
    if violations:
        raise InvalidInput(*violations)
    return pod


def read_pod(message: core_pb2.Pod) -> tuple[Pod, list[FieldViolation]]:
    """The pod as far as it can be read, and everything wrong with it."""
    violations: list[FieldViolation] = []
    metadata, spec, status = message.metadata, message.spec, message.status
    if not metadata.uid:
        violations.append(required("metadata.uid"))
    else:
        violations += check_uid("metadata.uid", metadata.uid)
    if metadata.name:
        violations += check_subdomain("metadata.name", metadata.name)
    if metadata.namespace:
        violations += check_label("metadata.namespace", metadata.namespace)
    if not spec.containers:
        violations.append(required("spec.containers"))
    names: set[str] = set()
    containers = _read_containers(spec.containers, "spec.containers", False, names, violations)
    inits = _read_containers(spec.init_containers, "spec.initContainers", True, names, violations)
    pod = Pod(
        uid=PodUid(metadata.uid),
        name=metadata.name,
        namespace=metadata.namespace,
        init_containers=inits,
        containers=containers,
        resources=read_resources(spec.resources, "spec.resources", violations)
        if spec.HasField("resources")
        else None,
        overhead=read_amounts(spec.overhead, "spec", ".overhead", violations),
        status_qos_class=status.qos_class,
        claimed_resources=frozenset(
            (mapping.container_name, mapping.resource_name)
            for mapping in status.extended_resource_claim_status.request_mappings
        ),
    )
    return pod, violations


def _read_containers(
    messages: Iterable[core_pb2.Container],
    field: str,
    is_init: bool,
    names: set[str],
    violations: list[FieldViolation],
) -> tuple[Container, ...]:
    read = []
    for index, message in enumerate(messages):
        name = message.name
        if not name:
            violations.append(required(f"{field}[{index}].name"))
        elif name in names:
            violations.append(duplicate(f"{field}[{index}].name", name))
        else:
            violations += check_label(f"{field}[{index}].name", name)
        names.add(name)
        restartable = False
        if is_init and message.HasField("restart_policy"):
            policy = message.restart_policy
            restartable = policy == "Always"
            if policy not in _RESTART_POLICIES:
                path = f"{field}[{index}].restartPolicy"
                violations.append(unsupported(path, policy, _RESTART_POLICIES))
        resources = read_resources(message.resources, f"{field}[{index}].resources", violations)
        read.append(
            Container(name=name, resources=resources, is_init=is_init, restartable=restartable)
        )
    return tuple(read)
