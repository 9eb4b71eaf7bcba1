"""Manifests of static pods, YAML and JSON, from the text to the pod that it means on a node."""

from __future__ import annotations

from tests.fuzz.recorded import lines_of
from tests.fuzz.target import Target

from numalign_agent.manifests.errors import ManifestError
from numalign_agent.manifests.manifest import read_pod
from numalign_agent.manifests.placing import Origin

_ORIGIN = Origin("node-1", "manifests/web.yaml")


def _seeds() -> tuple[bytes, ...]:
    recorded = [record["input"] for record in lines_of("admission/manifests.jsonl.gz")]
    return tuple(given["content"].encode() for given in recorded if "content" in given)


def run(data: bytes) -> None:
    """Read the manifest twice: it is the same pod each time."""
    pod = read_pod(data, _ORIGIN)
    assert pod == read_pod(data, _ORIGIN)
    assert pod.uid


TARGET = Target(name="static_manifest", run=run, documented=(ManifestError,), seeds=_seeds())
