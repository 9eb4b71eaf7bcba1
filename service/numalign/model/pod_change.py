"""What changed between two versions of a pod, as far as its placement depends on it."""

from __future__ import annotations

from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod, Resources
from numalign.model.qos import qos_class


def changed_field(old: Pod, new: Pod, gates: FeatureGates) -> str | None:
    """Path of the first field that differs; None if the pod would be judged the same.

    Containers (names, order, kind), their resources, the pod-level section, overhead and the
    QoS class count; everything else may change freely.
    """
    for path, before, after in (
        ("spec.initContainers", old.init_containers, new.init_containers),
        ("spec.containers", old.containers, new.containers),
    ):
        changed = _changed_containers(path, before, after)
        if changed is not None:
            return changed
    if old.resources != new.resources:
        if old.resources is None or new.resources is None:
            return "spec.resources"
        return _changed_resources("spec.resources", old.resources, new.resources)
    if old.overhead != new.overhead:
        return "spec.overhead"
    if qos_class(old, gates) != qos_class(new, gates):
        return "status.qosClass"
    return None


def _changed_containers(
    path: str, before: tuple[Container, ...], after: tuple[Container, ...]
) -> str | None:
    if len(before) != len(after):
        return path
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if old == new:
            continue
        if old.name != new.name:
            return f"{path}[{index}].name"
        if old.restartable != new.restartable:
            return f"{path}[{index}].restartPolicy"
        return _changed_resources(f"{path}[{index}].resources", old.resources, new.resources)
    return None


def _changed_resources(path: str, old: Resources, new: Resources) -> str:
    for kind, before, after in (
        ("requests", old.requests, new.requests),
        ("limits", old.limits, new.limits),
    ):
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                return f"{path}.{kind}[{name}]"
    return path
