"""A manifest read from beginning to end: text, pod, this node's pod, checks (CFG-8).

Separate from the parts, because only here is it said in which order they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numalign.errors import InvalidInput
from numalign.kube.manifest_text import MAX_MANIFEST_BYTES, first_document_of
from numalign_agent.manifests.decoding import decode
from numalign_agent.manifests.defaults import with_defaults
from numalign_agent.manifests.errors import InvalidPod, ManifestError, NotAPod
from numalign_agent.manifests.placing import Origin, placed
from numalign_agent.manifests.references import forbidden_reference
from numalign_agent.manifests.showing import shown
from numalign_agent.manifests.validation.pod import pod_problems
from numalign_agent.pod import AgentPod

READ_LIMIT = MAX_MANIFEST_BYTES
"""How many bytes a manifest may have."""

READ_LIMIT_REACHED = "the read limit is reached"


def read_pod(data: bytes, origin: Origin) -> AgentPod:
    """The pod that the bytes of a manifest mean on this node.

    Raises NotAPod for what does not decode as a v1.Pod, and ManifestError for a pod without a
    name, one that the API server would refuse, and one that refers to objects of an API server.
    """
    value = _decoded_text(data, origin)
    _check_kind(value, "Pod", origin)
    return _pod_of(value, origin)


def read_pod_list(data: bytes, origin: Origin) -> tuple[AgentPod, ...]:
    """The pods of a v1.PodList, in order. Raises as `read_pod` does, for the first bad one."""
    value = _decoded_text(data, origin)
    _check_kind(value, "PodList", origin)
    items = value.get("items") or []
    if not isinstance(items, list):
        raise NotAPod(origin.location, "items: must be a list")
    return tuple(_pod_of(item, origin) for item in items)


def _decoded_text(data: bytes, origin: Origin) -> Mapping[str, Any]:
    if len(data) > READ_LIMIT:
        raise ManifestError(READ_LIMIT_REACHED)
    try:
        value = first_document_of(data.decode("utf-8-sig"))
    except (InvalidInput, UnicodeDecodeError) as error:
        raise NotAPod(origin.location, " ".join(str(error).split())) from error
    if value is None:
        raise NotAPod(origin.location, "the first document is empty")
    if not isinstance(value, Mapping):
        raise NotAPod(origin.location, "must be an object with apiVersion and kind")
    return value


def _check_kind(value: Mapping[str, Any], kind: str, origin: Origin) -> None:
    given, version = value.get("kind"), value.get("apiVersion")
    for key, word in (("kind", given), ("apiVersion", version)):
        if not word:
            raise NotAPod(origin.location, f"{key} is missing")
    if given != kind or version != "v1":
        raise NotAPod(origin.location, f"is kind {given!r} of {version!r}, must be a v1 {kind}")


def _pod_of(value: object, origin: Origin) -> AgentPod:
    document, problems = decode(value)
    if problems:
        why = "; ".join(
            f"{p.field}: {p.description}" if p.field else p.description for p in problems
        )
        raise NotAPod(origin.location, why)
    for key in ("apiVersion", "kind"):  # what the object is called does not say what is in it
        document.pop(key, None)
    if not document.get("metadata", {}).get("name"):
        raise ManifestError("invalid pod: name is needed for the pod")
    pod = placed(with_defaults(document), origin)
    if violations := pod_problems(pod):
        raise InvalidPod(violations)
    reference = forbidden_reference(pod)
    if reference is not None:
        raise ManifestError(f"static pods may not reference {reference}")
    return AgentPod(shown(pod))
