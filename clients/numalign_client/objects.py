"""Pods and Node objects in every form that a program may have them in.

Separate from the wire, which is about bytes: here are manifests, YAML, files, and the objects of
the Kubernetes client libraries. Nothing of those libraries is imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from google.protobuf.message import DecodeError, Message
from grpc import StatusCode

from numalign.kube.core.v1 import core_pb2
from numalign_client.errors import InvalidRequest, Violation
from numalign_client.wire import invalid_requests

M = TypeVar("M", bound=Message)

_STORED = b"k8s\x00"
"""What the API server's protobuf bytes begin with; the object is wrapped then."""


@runtime_checkable
class KubernetesObject(Protocol):
    """An object of the `kubernetes` or `kubernetes_asyncio` library, such as a V1Pod."""

    @property
    def attribute_map(self) -> Mapping[str, str]:
        """JSON names by attribute."""
        ...


PodLike: TypeAlias = (
    core_pb2.Pod | Mapping[str, object] | KubernetesObject | str | os.PathLike[str] | bytes
)
"""A pod: a message, a manifest as a mapping, an object of a Kubernetes client library, text in
YAML or JSON, the path of a file with such text, or the bytes of a v1.Pod."""

NodeLike: TypeAlias = (
    core_pb2.Node | Mapping[str, object] | KubernetesObject | str | os.PathLike[str] | bytes
)
"""A Node object, in the same forms."""


@dataclass(frozen=True, slots=True)
class GivenPod:
    """The bytes of a v1.Pod, its uid, and whether that was made up here."""

    data: bytes
    uid: str
    uid_invented: bool = False


def given_pod(pod: PodLike) -> GivenPod:
    """The pod as it is sent.

    A manifest gets what the API server would fill in, and namespace `default`. A pod without a
    uid gets one that depends on namespace and name alone, the one that the command makes up.
    Raises InvalidRequest naming every field that is wrong, TypeError for what is no pod at all,
    OSError for a file that cannot be read, and ImportError where YAML cannot be read here.
    """
    if isinstance(pod, bytes):
        return _with_uid(_parsed(core_pb2.Pod, pod), pod)
    if isinstance(pod, core_pb2.Pod):
        return _with_uid(pod, pod.SerializeToString())
    from numalign.kube.pod_defaults import apply_defaults
    from numalign.kube.pod_json import pod_from_json

    with invalid_requests():
        message = pod_from_json(_mapping("a pod", pod))
        message.metadata.namespace = message.metadata.namespace or "default"
        apply_defaults(message)
    return _with_uid(message, message.SerializeToString())


def given_node(node: NodeLike) -> core_pb2.Node:
    """The Node object as a message. Raises as `given_pod` does."""
    if isinstance(node, core_pb2.Node):
        return node
    if isinstance(node, bytes):
        return _parsed(core_pb2.Node, node)
    from numalign.kube.pod_json import node_from_json

    with invalid_requests():
        return node_from_json(_mapping("a Node object", node))


def _with_uid(message: core_pb2.Pod, data: bytes) -> GivenPod:
    metadata = message.metadata
    if metadata.uid:
        return GivenPod(data, metadata.uid)
    if not metadata.name:
        raise _invalid("metadata.name", "Required value: a pod without a uid needs a name")
    from numalign.kube.invented_uid import invented_uid

    uid = invented_uid("Pod", metadata.namespace or "default", metadata.name)
    # Fields of a message that comes in parts add up, so the caller's bytes stay as they are.
    more = core_pb2.Pod(metadata=core_pb2.ObjectMeta(uid=uid))
    return GivenPod(data + more.SerializeToString(), uid, uid_invented=True)


def _parsed(kind: type[M], data: bytes) -> M:
    name = kind.DESCRIPTOR.name
    if data.startswith(_STORED):
        raise _invalid(
            name.lower(),
            f"Invalid value: these are the API server's bytes around a {name}; send `raw` alone",
        )
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise _invalid(
            name.lower(), f"Invalid value: the bytes are not those of a v1.{name}"
        ) from error


def _mapping(what: str, value: object) -> Mapping[str, object]:
    if isinstance(value, os.PathLike):
        with open(value, encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs a client's start
            value = file.read()
    if isinstance(value, str):
        return _decoded(what, value)
    if isinstance(value, Mapping):
        return value
    if isinstance(value, KubernetesObject):
        return cast("Mapping[str, object]", _plain(value))
    raise TypeError(
        f"{what} must be a message, a mapping, an object of a Kubernetes client library, text, a "
        f"path or bytes, not {type(value).__name__}"
    )


def _decoded(what: str, text: str) -> Mapping[str, object]:
    """The one object in a text."""
    documents: list[object]
    if text.lstrip().startswith("{"):
        try:
            documents = [json.loads(text)]
        except ValueError as error:
            raise _invalid("document", f"cannot be decoded: {error}") from error
    else:
        try:
            from numalign.kube.manifest_text import documents_of
        except ModuleNotFoundError as error:
            if error.name != "yaml":
                raise
            raise ImportError(
                f"{what} as YAML needs the package PyYAML: pip install 'numalign[yaml]'",
                name="yaml",
            ) from error
        with invalid_requests():
            documents = [document for document in documents_of(text) if document is not None]
    if len(documents) != 1:
        raise _invalid("document", f"there must be one in {what}, not {len(documents)}")
    (document,) = documents
    if not isinstance(document, Mapping):
        raise _invalid(
            "document",
            f"must be an object; {what} as text is its manifest, and a file is named by a path "
            "such as pathlib.Path('pod.yaml')",
        )
    return document


def _plain(value: object) -> object:
    """An object of a Kubernetes client library as the API server's JSON has it."""
    if isinstance(value, KubernetesObject):
        named = {name: getattr(value, attribute) for attribute, name in value.attribute_map.items()}
        return {name: _plain(inner) for name, inner in named.items() if inner is not None}
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    from datetime import UTC, datetime

    if isinstance(value, datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).isoformat()
    return value


def _invalid(field: str, description: str) -> InvalidRequest:
    return InvalidRequest(
        StatusCode.INVALID_ARGUMENT,
        f"{field}: {description}",
        (Violation(field, description),),
    )
