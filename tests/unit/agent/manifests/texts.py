"""Manifests that tests begin from."""

from __future__ import annotations

import copy
from typing import Any

import yaml

from numalign_agent.manifests.manifest import read_pod
from numalign_agent.manifests.placing import Origin
from numalign_agent.pod import AgentPod

ORIGIN = Origin("node-1", "/manifests/web.yaml")
PLAIN: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
}


def manifest(
    *, metadata: object = None, spec: object = None, container: object = None
) -> dict[str, Any]:
    """The plain pod with other fields in one place or another."""
    document = copy.deepcopy(PLAIN)
    document["metadata"].update(metadata or {})
    document["spec"]["containers"][0].update(container or {})
    document["spec"].update(spec or {})
    return document


def read(document: object, origin: Origin = ORIGIN) -> AgentPod:
    """The pod of a document written as YAML."""
    return read_pod(yaml.safe_dump(document).encode(), origin)
