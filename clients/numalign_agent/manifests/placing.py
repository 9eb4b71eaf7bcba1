"""What a manifest's pod gets because it is to run on this node (CFG-9)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from numalign_agent.manifests.uid import generated_uid
from numalign_agent.pod import CONFIG_HASH

Document = dict[str, Any]

_TOLERATES_EVICTION = {"operator": "Exists", "effect": "NoExecute"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a manifest was found, and on which node. `is_url`: by HTTP, not in a file."""

    node_name: str
    location: str
    is_url: bool = False

    @property
    def hashed(self) -> tuple[str, ...]:
        """What of it goes into a generated UID: an address means the same on every node."""
        if self.is_url:
            return (f"url:{self.location}",)
        return (f"host:{self.node_name}", f"file:{self.location}")


def placed(document: Document, origin: Origin) -> Document:
    """A copy of a decoded and defaulted pod with UID, name, node, phase and toleration."""
    pod = copy.deepcopy(document)
    metadata, spec = pod.setdefault("metadata", {}), pod.setdefault("spec", {})
    uid = metadata.get("uid") or generated_uid(document, *origin.hashed)
    metadata["uid"] = uid
    metadata["name"] = f"{metadata['name']}-{origin.node_name.lower()}"
    metadata["namespace"] = metadata.get("namespace") or "default"
    metadata["annotations"] = {**metadata.get("annotations", {}), CONFIG_HASH: uid}
    spec["nodeName"] = origin.node_name
    if not origin.is_url:
        spec["tolerations"] = _tolerating(spec.get("tolerations", []))
    pod.setdefault("status", {})["phase"] = "Pending"
    return pod


def _tolerating(tolerations: list[Document]) -> list[Document]:
    """The list with eviction by taint tolerated for ever."""
    wanted = [
        dict(_TOLERATES_EVICTION) if _says_the_same(toleration) else toleration
        for toleration in tolerations
    ]
    if _TOLERATES_EVICTION not in wanted:
        wanted.append(dict(_TOLERATES_EVICTION))
    return wanted


def _says_the_same(toleration: Document) -> bool:
    without_time = {k: v for k, v in toleration.items() if k != "tolerationSeconds"}
    return without_time == _TOLERATES_EVICTION
