"""What changed between two versions of a pod, as far as its placement depends on it.

Also how much of that a resize in place may change: the CPU and memory of containers and of the
pod as a whole, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod, Resources
from numalign.model.qos import qos_class

_RESIZED = frozenset({"cpu", "memory"})
_NO_SECTION = Resources()


@dataclass(frozen=True, slots=True)
class _Change:
    """A field that differs, and whether a resize can make it differ."""

    path: str
    by_resize: bool = False


def changed_field(old: Pod, new: Pod, gates: FeatureGates) -> str | None:
    """Path of the first field that differs; None if the pod would be judged the same.

    Containers (names, order, kind), their resources, the pod-level section, overhead and the
    QoS class count; everything else may change freely.
    """
    return next((change.path for change in _changes(old, new, gates)), None)


def changed_beyond_resize(old: Pod, new: Pod, gates: FeatureGates) -> str | None:
    """Path of the first field that differs and that no resize can change; None if there is none.

    As `changed_field`, but CPU and memory of resizable containers (ALLOC-5) and, with their
    feature on, of the pod-level section may be others.
    """
    changes = _changes(old, new, gates)
    return next((change.path for change in changes if not change.by_resize), None)


def is_resizable(container: Container, gates: FeatureGates) -> bool:
    """Whether the resources of a container can change while the pod lives (ALLOC-5)."""
    return not container.is_regular_init or gates.in_place_pod_vertical_scaling_init_containers


def _changes(old: Pod, new: Pod, gates: FeatureGates) -> Iterator[_Change]:
    for path, before, after in (
        ("spec.initContainers", old.init_containers, new.init_containers),
        ("spec.containers", old.containers, new.containers),
    ):
        yield from _of_containers(path, before, after, gates)
    if old.resources != new.resources:
        resizable = gates.in_place_pod_level_resources_vertical_scaling
        if old.resources is None or new.resources is None:
            yield _Change("spec.resources", resizable)
        yield from _of_resources(
            "spec.resources",
            old.resources or _NO_SECTION,
            new.resources or _NO_SECTION,
            resizable=resizable,
        )
    if old.overhead != new.overhead:
        yield _Change("spec.overhead")
    if qos_class(old, gates) != qos_class(new, gates):
        yield _Change("status.qosClass")


def _of_containers(
    path: str, before: tuple[Container, ...], after: tuple[Container, ...], gates: FeatureGates
) -> Iterator[_Change]:
    if len(before) != len(after):
        yield _Change(path)
        return
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if old == new:
            continue
        if old.name != new.name:
            yield _Change(f"{path}[{index}].name")
        if old.restartable != new.restartable:
            yield _Change(f"{path}[{index}].restartPolicy")
        yield from _of_resources(
            f"{path}[{index}].resources",
            old.resources,
            new.resources,
            resizable=is_resizable(new, gates),
        )


def _of_resources(
    path: str, old: Resources, new: Resources, *, resizable: bool
) -> Iterator[_Change]:
    for kind, before, after in (
        ("requests", old.requests, new.requests),
        ("limits", old.limits, new.limits),
    ):
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                yield _Change(f"{path}.{kind}[{name}]", resizable and name in _RESIZED)
