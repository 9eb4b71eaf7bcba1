"""The kustomizations of deploy/, and what kubectl renders of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.debian import unpacked

DEPLOY = Path(__file__).parents[2] / "deploy"
KUSTOMIZE = DEPLOY / "kustomize"
KUSTOMIZATIONS = (
    "base",
    *sorted(f"overlays/{path.name}" for path in (KUSTOMIZE / "overlays").iterdir()),
)
OPERATOR = "prometheus-operator"
"""The kustomization beside them, of objects for the Prometheus operator."""

CONFIGS = sorted(str(path.relative_to(KUSTOMIZE)) for path in KUSTOMIZE.rglob("config.yaml"))

Document = Mapping[str, Any]


@cache
def rendered(name: str) -> tuple[Document, ...]:
    """The objects of a kustomization; leaves the test out where kubectl cannot be had."""
    found = shutil.which("kubectl")
    kubectl = Path(found) if found else unpacked("trixie", "kubectl") / "usr" / "bin" / "kubectl"
    done = subprocess.run(
        [kubectl, "kustomize", KUSTOMIZE / name],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return tuple(yaml.safe_load_all(done.stdout))


def of_kind(documents: tuple[Document, ...], kind: str) -> list[Document]:
    """The objects of one kind."""
    return [document for document in documents if document["kind"] == kind]


def pod_of(name: str) -> Document:
    """The pod template of a kustomization's only DaemonSet."""
    (daemon_set,) = of_kind(rendered(name), "DaemonSet")
    template: Document = daemon_set["spec"]["template"]
    return template


def containers_of(name: str) -> dict[str, Document]:
    """The containers of that pod by name, without those that only prepare."""
    return {container["name"]: container for container in pod_of(name)["spec"]["containers"]}
