"""What a mirror pod looks like, and when one is made or deleted (MIR-1, MIR-3). Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numalign_agent.pod import CONFIG_HASH, CONFIG_MIRROR, AgentPod

Json = Mapping[str, Any]


class NoMirror(Exception):
    """The Node object does not allow a mirror pod; the text says why."""


@dataclass(frozen=True, slots=True)
class MirrorStep:
    """What is to be done now; a mirror pod is created only once the other one is deleted."""

    delete: bool
    create: bool


def mirror_step(static: AgentPod, mirror: AgentPod | None, node: Json | None) -> MirrorStep:
    """What makes the mirror pod the right one. `node`: None as long as it is not known."""
    wrong = mirror is not None and (
        mirror.deletion_timestamp is not None or not shows(mirror, static)
    )
    has_node = node is not None and "deletionTimestamp" not in (node.get("metadata") or {})
    return MirrorStep(delete=wrong, create=(mirror is None or wrong) and has_node)


def shows(mirror: AgentPod, static: AgentPod) -> bool:
    """Whether a mirror pod was made from this very static pod."""
    return mirror.annotations.get(CONFIG_MIRROR) == static.annotations.get(CONFIG_HASH)


def mirror_of(static: AgentPod, node_name: str, node: Json) -> dict[str, Any]:
    """The mirror pod to create. Raises NoMirror for a node without a UID."""
    uid = (node.get("metadata") or {}).get("uid")
    if not uid:
        raise NoMirror(f"UID unset for node {node_name}")
    annotations = {**static.annotations, CONFIG_MIRROR: static.annotations.get(CONFIG_HASH, "")}
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": node_name,
        "uid": uid,
        "controller": True,
    }
    metadata = {**static.metadata, "annotations": annotations, "ownerReferences": [owner]}
    for key in ("uid", "resourceVersion"):  # the server's own to give
        metadata.pop(key, None)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": copy.deepcopy(dict(static.spec)),
    }
