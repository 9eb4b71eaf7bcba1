"""Checks on the metadata of a pod."""

from __future__ import annotations

from typing import Any

from numalign.kube.names import check_label, check_subdomain
from numalign.kube.violations import too_long
from numalign_agent.manifests.validation.words import (
    Problems,
    check_label_value,
    check_qualified,
)

MAX_ANNOTATIONS = 256 * 1024
"""Bytes of all annotations together."""


def check_metadata(metadata: dict[str, Any], path: str = "metadata") -> Problems:
    """Names, labels and annotations."""
    yield from check_subdomain(f"{path}.name", metadata["name"])
    yield from check_label(f"{path}.namespace", metadata["namespace"])
    for key, value in metadata.get("labels", {}).items():
        yield from check_qualified(f"{path}.labels", key)
        yield from check_label_value(f"{path}.labels", value)
    annotations = metadata.get("annotations", {})
    for key in annotations:
        yield from check_qualified(f"{path}.annotations", key.lower())
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > MAX_ANNOTATIONS:
        yield too_long(f"{path}.annotations", MAX_ANNOTATIONS)
