"""Pods without what may be secret: what is left is what decisions are made of."""

from __future__ import annotations

from google.protobuf.message import Message

from numalign.kube.core.v1 import core_pb2

SECRET_FIELDS = frozenset({"command", "args", "env"})
"""What a container runs, wherever in the pod it stands."""

DECIDING_ANNOTATIONS = ("kubernetes.io/", "container.apparmor.security.beta.kubernetes.io/")
"""Prefixes of the annotations that the kubelet's rules read."""


def redacted_pod(data: bytes) -> bytes:
    """The pod in `data` without what may be secret."""
    return redacted(core_pb2.Pod.FromString(data)).SerializeToString(deterministic=True)


def redacted(pod: core_pb2.Pod) -> core_pb2.Pod:
    """The pod without what it runs, annotations that decide nothing, and unknown fields."""
    kept = core_pb2.Pod()
    kept.CopyFrom(pod)
    _forget(kept)
    kept.DiscardUnknownFields()
    for name in list(kept.metadata.annotations):
        if not name.startswith(DECIDING_ANNOTATIONS):
            del kept.metadata.annotations[name]
    return kept


def _forget(message: Message) -> None:
    for field, value in message.ListFields():
        if field.name in SECRET_FIELDS:
            message.ClearField(field.name)
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for inner in value if field.is_repeated else (value,):
                _forget(inner)
