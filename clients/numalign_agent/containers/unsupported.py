"""What a pod asks for and a process of the node does not get. Pure.

Such a pod runs all the same, without these; it is told of once, so that nobody wonders.
"""

from __future__ import annotations

from collections.abc import Iterator

from numalign_agent.pod import AgentPod

_OF_POD = (
    "volumes",
    "securityContext",
    "shareProcessNamespace",
    "hostAliases",
    "dnsConfig",
    "runtimeClassName",
    "imagePullSecrets",
)
_OF_CONTAINER = (
    "volumeMounts",
    "volumeDevices",
    "securityContext",
    "lifecycle",
    "stdin",
    "tty",
)


def not_given(pod: AgentPod) -> list[str]:
    """The paths of fields that are set and have no effect, in the order of the pod."""
    return list(_paths(pod))


def _paths(pod: AgentPod) -> Iterator[str]:
    for key in _OF_POD:
        if pod.spec.get(key):
            yield f"spec.{key}"
    for group in ("initContainers", "containers"):
        for index, container in enumerate(pod.spec.get(group) or ()):
            for key in _OF_CONTAINER:
                if container.get(key):
                    yield f"spec.{group}[{index}].{key}"
