"""Merging what several plugins want in one container (DEV-42).

Separate because it is the one place where plugins can disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from numalign.provider.engine import Preparation
from numalign.provider.values import ContainerEdits, DeviceNode, Mount

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MergedEdits:
    """The merged answer, and a line for each value that another one overruled."""

    edits: ContainerEdits
    conflicts: tuple[str, ...] = ()


def merged(answers: Mapping[str, ContainerEdits]) -> MergedEdits:
    """Merge the answers of a container's resources, in ascending order of resource (DEV-42).

    The first occurrence of an environment variable, annotation, container path or CDI
    device wins; a later different value is reported and left out.
    """
    conflicts: list[str] = []
    envs: dict[str, str] = {}
    nodes: dict[str, DeviceNode] = {}
    mounts: dict[str, Mount] = {}
    annotations: dict[str, str] = {}
    cdi_devices: dict[str, str] = {}
    for resource, answer in sorted(answers.items()):
        keep = _Keep(resource, conflicts)
        keep("environment variable", envs, answer.envs.items())
        keep("device", nodes, ((node.container_path, node) for node in answer.device_nodes))
        keep("mount", mounts, ((mount.container_path, mount) for mount in answer.mounts))
        keep("annotation", annotations, answer.annotations.items())
        keep("CDI device", cdi_devices, ((name, name) for name in answer.cdi_devices))
    return MergedEdits(
        ContainerEdits(
            envs=envs,
            mounts=tuple(mounts.values()),
            device_nodes=tuple(nodes.values()),
            annotations=annotations,
            cdi_devices=tuple(cdi_devices),
        ),
        tuple(conflicts),
    )


def preparation(answers: Mapping[str, ContainerEdits], *, late: bool, unready: bool) -> Preparation:
    """What the container gets from the plugins that answered; without any, nothing is set.

    `late`: it was given devices only now. `unready`: they have yet to be made ready.
    """
    wanted = merged(answers)
    return Preparation(
        edits=wanted.edits if answers else None,
        conflicts=wanted.conflicts,
        newly_allocated=late,
        unready=unready,
    )


class _Keep:
    """Keeps first values and notes what they overrule."""

    __slots__ = ("_conflicts", "_resource")

    def __init__(self, resource: str, conflicts: list[str]) -> None:
        self._resource = resource
        self._conflicts = conflicts

    def __call__(self, kind: str, kept: dict[str, T], offered: Iterable[tuple[str, T]]) -> None:
        for key, value in offered:
            if kept.setdefault(key, value) != value:
                self._conflicts.append(
                    f'{kind} "{key}" of resource "{self._resource}" conflicts with an '
                    f"earlier one and is left out"
                )
