"""Pods and containers for tests, as short as they can be."""

from __future__ import annotations

from typing import Any

from numalign_agent.containers.spec import containers_of
from numalign_agent.pod import CONFIG_SOURCE, AgentPod
from numalign_agent.runners.port import ContainerPhase, RuntimeContainer


def container(name: str = "c", **fields: Any) -> dict[str, Any]:
    """A container's document."""
    return {"name": name, "image": f"{name}-image", "command": ["run"], **fields}


def sidecar(name: str, **fields: Any) -> dict[str, Any]:
    """An init container that goes on running."""
    return container(name, restartPolicy="Always", **fields)


def pod(
    name: str = "p",
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    source: str = "api",
    created: str = "",
    status: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> AgentPod:
    """A pod whose UID is `uid-<name>`, with one container `c` if none is given."""
    document: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": {CONFIG_SOURCE: source},
            **({"creationTimestamp": created} if created else {}),
            **(metadata or {}),
        },
        "spec": {"containers": list(containers) or [container()], **spec},
    }
    if init:
        document["spec"]["initContainers"] = list(init)
    if status:
        document["status"] = status
    return AgentPod(document)


def found(
    of: AgentPod, name: str = "c", phase: str = "running", attempt: int = 0, **fields: Any
) -> RuntimeContainer:
    """A container of a pod as the runtime lists it; its id is `<name>-<attempt>`."""
    (spec,) = (spec for spec in containers_of(of) if spec.name == name)
    kept: dict[str, Any] = {"spec_hash": spec.hash, "started_at": 100.0, **fields}
    return RuntimeContainer(
        id=f"{name}-{attempt}", name=name, phase=ContainerPhase(phase), attempt=attempt, **kept
    )


def ended(
    of: AgentPod, name: str = "c", code: int = 0, attempt: int = 0, **fields: Any
) -> RuntimeContainer:
    """A container that has ended."""
    kept: dict[str, Any] = {
        "exit_code": code,
        "reason": "Error" if code else "Completed",
        "finished_at": 200.0,
        **fields,
    }
    return found(of, name, "exited", attempt, **kept)
