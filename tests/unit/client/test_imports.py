"""What a client loads: grpcio, protobuf and our own packages, and of those only what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import numalign
import numalign_client

_PATHS = [
    str(distribution("grpcio").locate_file("")),
    *(str(Path(package.__path__[0]).parent) for package in (numalign, numalign_client)),
]
_LOAD = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
exec(sys.argv[2])
print(json.dumps(sorted(sys.modules)))
"""


def _loaded(code: str) -> set[str]:
    """The modules that are loaded then, without those of path configuration files."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _LOAD, json.dumps(_PATHS), code],
        capture_output=True,
        check=True,
        text=True,
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("name", ["Client", "AsyncClient", "AdmissionClient", "Decision"])
def test_only_grpcio_and_protobuf(name: str) -> None:
    # Where other packages of grpc's are installed, it loads those itself.
    loaded = _loaded(f"from numalign_client import {name}") - _loaded("import grpc")
    top = {module.partition(".")[0] for module in loaded} - sys.stdlib_module_names
    google = {module for module in loaded if module.startswith("google.")}

    assert top <= {"google", "grpc", "numalign", "numalign_client"}
    assert all(module.startswith(("google.protobuf", "google._upb")) for module in google)


def test_what_comes_later_is_not_loaded() -> None:
    loaded = _loaded("from numalign_client import Client")

    assert loaded.isdisjoint(
        {
            "numalign.kube.pod_json",
            "numalign.status.v1.status_pb2",
            "numalign_client.async_client",
            "numalign_client.results",
        }
    )


def test_the_package_alone_costs_nothing() -> None:
    assert "grpc" not in _loaded("import numalign_client")
