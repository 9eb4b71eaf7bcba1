"""What a pod says about its containers, in the words the agent asks for.

Separate from the pod, because only whoever starts containers and computes statuses looks this
deep.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numalign_agent.pod import AgentPod


class ContainerKind(StrEnum):
    """What part of a pod's life a container has."""

    INIT = "init"
    SIDECAR = "sidecar"
    APP = "app"


class RestartPolicy(StrEnum):
    """What happens to a container that ended."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """One container: its document, and what kind it is."""

    document: Mapping[str, Any]
    kind: ContainerKind

    @property
    def name(self) -> str:
        """Name inside the pod."""
        return str(self.document.get("name") or "")

    @property
    def image(self) -> str:
        """The image that it names."""
        return str(self.document.get("image") or "")

    def has_probe(self, name: str) -> bool:
        """Whether it has this probe, such as `readinessProbe`."""
        return self.document.get(name) is not None

    @property
    def hash(self) -> str:
        """Changes when the container has to be made anew.

        Resources are left out: they change in place, or not at all.
        """
        lasting = {key: value for key, value in self.document.items() if key not in _IN_PLACE}
        text = json.dumps(lasting, sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


_IN_PLACE = frozenset({"resources", "resizePolicy"})


def containers_of(pod: AgentPod) -> Iterator[ContainerSpec]:
    """All containers of a pod, init containers first, in the order in which they start."""
    for document in pod.spec.get("initContainers") or ():
        restarts = document.get("restartPolicy") == RestartPolicy.ALWAYS
        yield ContainerSpec(document, ContainerKind.SIDECAR if restarts else ContainerKind.INIT)
    for document in pod.spec.get("containers") or ():
        yield ContainerSpec(document, ContainerKind.APP)


def container_of(pod: AgentPod, name: str) -> ContainerSpec:
    """The container of this name. Raises KeyError if the pod has none."""
    for container in containers_of(pod):
        if container.name == name:
            return container
    raise KeyError(f'pod "{pod.full_name}" has no container "{name}"')


def restart_policy(pod: AgentPod) -> RestartPolicy:
    """What happens to containers of the pod that ended; `Always` where it says nothing."""
    return RestartPolicy(pod.spec.get("restartPolicy") or RestartPolicy.ALWAYS)
