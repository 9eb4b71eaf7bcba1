"""A pod as the agent holds it: the whole Kubernetes object, with the words the agent asks for.

Separate from the service's decoded pod, because an agent also needs what no placement depends
on (metadata, status, commands) and has to hand all of it on unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CONFIG_SOURCE = "kubernetes.io/config.source"
CONFIG_SEEN = "kubernetes.io/config.seen"
CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_MIRROR = "kubernetes.io/config.mirror"

# Annotations that say something about this node's view of a pod, not about the pod (MERGE-4).
LOCAL_ANNOTATIONS = frozenset({CONFIG_SOURCE, CONFIG_SEEN, CONFIG_MIRROR})

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
TERMINAL_PHASES = frozenset({"Failed", "Succeeded"})

_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class AgentPod:
    """One pod: `document` is its v1.Pod object as JSON has it, and is never changed in place."""

    document: Mapping[str, Any]

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The object's metadata."""
        return self.document.get("metadata") or _NOTHING

    @property
    def spec(self) -> Mapping[str, Any]:
        """What is wanted."""
        return self.document.get("spec") or _NOTHING

    @property
    def status(self) -> Mapping[str, Any]:
        """What the source says has become of it."""
        return self.document.get("status") or _NOTHING

    @property
    def uid(self) -> str:
        """UID; empty only before a source has filled it in."""
        return str(self.metadata.get("uid") or "")

    @property
    def name(self) -> str:
        """Name inside its namespace."""
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        """Namespace; empty only before a source has filled it in."""
        return str(self.metadata.get("namespace") or "")

    @property
    def full_name(self) -> str:
        """`<name>_<namespace>`, by which static and mirror pods are paired (MIR-2)."""
        return f"{self.name}_{self.namespace}"

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations; those of `LOCAL_ANNOTATIONS` among them."""
        return self.metadata.get("annotations") or _NOTHING

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels."""
        return self.metadata.get("labels") or _NOTHING

    @property
    def source(self) -> str:
        """Name of the source that it came from; empty before the merge."""
        return self.annotations.get(CONFIG_SOURCE, "")

    @property
    def is_mirror(self) -> bool:
        """Whether it only shows a static pod in the API."""
        return CONFIG_MIRROR in self.annotations

    @property
    def is_static(self) -> bool:
        """Whether it comes from a source other than the API server."""
        return bool(self.source) and self.source != "api"

    @property
    def is_critical(self) -> bool:
        """Static, mirror, or of a priority that the system keeps for itself."""
        priority = self.spec.get("priority")
        high = priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY
        return self.is_static or self.is_mirror or high

    @property
    def phase(self) -> str:
        """The source's phase; empty where it says none."""
        return str(self.status.get("phase") or "")

    @property
    def is_terminal(self) -> bool:
        """Whether the source says that it has ended."""
        return self.phase in TERMINAL_PHASES

    @property
    def deletion_timestamp(self) -> str | None:
        """When its deletion was asked for, as RFC 3339; None if it was not."""
        return self.metadata.get("deletionTimestamp")

    @property
    def created(self) -> str:
        """Creation time as RFC 3339; empty (sorts first) for static pods (ADD-1)."""
        return str(self.metadata.get("creationTimestamp") or "")

    def replacing(self, part: str, **fields: object) -> AgentPod:
        """A copy whose `part` (`metadata`, `spec`, `status`) has other `fields`; None removes."""
        old = self.document.get(part) or {}
        new = {key: value for key, value in {**old, **fields}.items() if value is not None}
        return AgentPod({**self.document, part: new})

    def annotated(self, **annotations: str | None) -> AgentPod:
        """A copy with other annotations (`**{CONFIG_SEEN: ...}`); None removes."""
        merged = {**self.annotations, **annotations}
        kept = {key: value for key, value in merged.items() if value is not None}
        return self.replacing("metadata", annotations=kept or None)
