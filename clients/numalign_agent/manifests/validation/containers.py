"""Checks on containers, one by one and among each other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from numalign.kube.names import check_label
from numalign.kube.violations import duplicate, invalid, required
from numalign_agent.manifests.validation.environment import check_environment
from numalign_agent.manifests.validation.probes import check_probes, no_probes
from numalign_agent.manifests.validation.words import (
    MAX_PORT,
    Problems,
    check_at_least,
    check_one_of,
    check_port,
    forbidden,
    not_found,
    wrong_number,
)

Document = dict[str, Any]

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROTOCOLS = ("TCP", "UDP", "SCTP")


def check_containers(spec: Document, volumes: Collection[str]) -> Problems:
    """Everything about containers but their resources and their names being used twice."""
    if not spec.get("containers"):
        yield required("spec.containers")
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind, ())):
            path = f"spec.{kind}[{index}]"
            yield from _check_container(container, path, volumes)
            yield from _check_ports(container, f"{path}.ports", bool(spec.get("hostNetwork")))
            if kind == "initContainers" and container.get("restartPolicy") != "Always":
                yield from no_probes(container, path)
            else:
                yield from check_probes(container, path)
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")


def _check_container(container: Document, path: str, volumes: Collection[str]) -> Problems:
    name, image = container.get("name", ""), container.get("image", "")
    if name:  # one that is missing is found with the names
        yield from check_label(f"{path}.name", name)
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    policy = container.get("imagePullPolicy")
    yield from check_one_of(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
    policy = container.get("terminationMessagePolicy")
    yield from check_one_of(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    yield from check_environment(container, path)
    yield from _check_mounts(container.get("volumeMounts", ()), f"{path}.volumeMounts", volumes)
    security = container.get("securityContext", {})
    for number in ("runAsUser", "runAsGroup"):
        yield from check_at_least(f"{path}.securityContext.{number}", security.get(number), 0)


def _check_ports(container: Document, path: str, host_network: bool) -> Problems:
    names: set[str] = set()
    for index, port in enumerate(container.get("ports", ())):
        at = f"{path}[{index}]"
        name, number, host = port.get("name"), port.get("containerPort"), port.get("hostPort")
        if name:
            yield from check_port(f"{at}.name", name)
            if name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        if not number:
            yield required(f"{at}.containerPort")
        else:
            yield from check_port(f"{at}.containerPort", number)
        if host and not 1 <= host <= MAX_PORT:
            yield wrong_number(
                f"{at}.hostPort", host, f"must be between 1 and {MAX_PORT}, inclusive"
            )
        elif host_network and host != number:
            detail = "must match `containerPort` when `hostNetwork` is true"
            yield wrong_number(f"{at}.hostPort", host or 0, detail)
        yield from check_one_of(f"{at}.protocol", port.get("protocol"), _PROTOCOLS)


def _check_mounts(mounts: Collection[Document], path: str, volumes: Collection[str]) -> Problems:
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        at = f"{path}[{index}]"
        name, place = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{at}.name")
        elif name not in volumes:
            yield not_found(f"{at}.name", name)
        if not place:
            yield required(f"{at}.mountPath")
        elif place in places:
            yield invalid(f"{at}.mountPath", place, "must be unique")
        places.add(place)
        sub_path = mount.get("subPath", "")
        if sub_path.startswith("/") or ".." in sub_path.split("/"):
            yield invalid(f"{at}.subPath", sub_path, "must be a relative path without '..'")
