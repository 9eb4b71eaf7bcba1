"""The environment, command and working directory of a container as a process gets them.

Pure. What a process on the node cannot be given (a secret, a config map, an image's own
command) is refused, naming the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numalign_agent.containers.expansion import expanded
from numalign_agent.containers.spec import ContainerSpec
from numalign_agent.pod import AgentPod

BASE_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
"""What a container has that sets nothing itself."""


class CannotProvide(ValueError):
    """A field of a container asks for what this agent does not give; the text names it."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What to execute."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str


def process_spec(
    pod: AgentPod, container: ContainerSpec, granted: Mapping[str, str]
) -> ProcessSpec:
    """What to execute for a container; `granted` is the environment of its devices.

    Raises CannotProvide.
    """
    document = container.document
    environment = _environment(pod, container, granted)
    command = document.get("command") or ()
    if not command:
        raise CannotProvide(
            f"container {container.name}: no command: the command of an image is not known here"
        )
    words = (*command, *(document.get("args") or ()))
    return ProcessSpec(
        argv=tuple(expanded(str(word), environment) for word in words),
        environment=environment,
        directory=str(document.get("workingDir") or "/"),
    )


def _environment(
    pod: AgentPod, container: ContainerSpec, granted: Mapping[str, str]
) -> dict[str, str]:
    if container.document.get("envFrom"):
        raise CannotProvide(f"container {container.name}: envFrom is not supported")
    variables = {**BASE_ENVIRONMENT, "HOSTNAME": pod.name}
    for entry in container.document.get("env") or ():
        name = str(entry.get("name") or "")
        source = entry.get("valueFrom")
        if source is None:
            variables[name] = expanded(str(entry.get("value") or ""), variables)
        else:
            variables[name] = _referenced(pod, container, name, source)
    return {**variables, **granted}


def _referenced(
    pod: AgentPod, container: ContainerSpec, name: str, source: Mapping[str, Any]
) -> str:
    where = f"container {container.name}: env {name}"
    field = source.get("fieldRef")
    if not isinstance(field, Mapping):
        kind = next(iter(source), "valueFrom")
        raise CannotProvide(f"{where}: {kind} is not supported")
    path = str(field.get("fieldPath") or "")
    value = pod_field(pod, path)
    if value is None:
        raise CannotProvide(f"{where}: fieldPath {path} is not supported")
    return value


_FIELDS: Mapping[str, Callable[[AgentPod], str]] = {
    "metadata.name": lambda pod: pod.name,
    "metadata.namespace": lambda pod: pod.namespace,
    "metadata.uid": lambda pod: pod.uid,
    "spec.nodeName": lambda pod: str(pod.spec.get("nodeName") or ""),
    "spec.serviceAccountName": lambda pod: str(pod.spec.get("serviceAccountName") or ""),
}


def pod_field(pod: AgentPod, path: str) -> str | None:
    """The value of a field of the downward API; None for one that is not known."""
    read = _FIELDS.get(path)
    if read is not None:
        return read(pod)
    for prefix, values in (
        ("metadata.labels['", pod.labels),
        ("metadata.annotations['", pod.annotations),
    ):
        if path.startswith(prefix) and path.endswith("']"):
            return str(values.get(path.removeprefix(prefix).removesuffix("']"), ""))
    return None
