"""Objects of kustomize and of Helm, with what only one of the two has to write taken away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import yaml
from tests.deploy.manifests import Document

_HELM_LABELS = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
}
_HASHED = re.compile(r"^(numalign-(?:config|collector|telemetry))-[a-z0-9]{10}$")


def by_name(documents: Iterable[Document]) -> dict[tuple[str, str], Any]:
    """Objects by kind and name. The namespace is Helm's to make, and is no object of a chart."""
    found = {}
    for document in documents:
        if document["kind"] != "Namespace":
            same = _alike(deepcopy(document))
            found[same["kind"], same["metadata"]["name"]] = same
    return found


def _alike(value: Any) -> Any:
    """Lists of what has a name by that name; documents inside of strings as what they say."""
    match value:
        case str():
            return _HASHED.sub(r"\1", value)
        case list() if value and all(isinstance(each, Mapping) and _key(each) for each in value):
            return {_key(each): _alike(each) for each in value}
        case list():
            return [_alike(each) for each in value]
        case dict():
            return {
                key: yaml.safe_load(each) if key.endswith(".yaml") else _alike(each)
                for key, each in value.items()
                if key not in _HELM_LABELS and not key.startswith("checksum/")
            }
        case _:
            return value


def _key(entry: Mapping[str, Any]) -> str:
    return str(entry.get("mountPath") or entry.get("name") or "")
