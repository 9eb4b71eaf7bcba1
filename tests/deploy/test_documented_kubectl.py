"""Commands for a cluster in the documents: the real kubectl and helm read them, without a cluster.

kubectl reads its arguments and builds what a kustomization says before it connects; so what it
complains of has to be that nobody answers.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from _pytest.mark import ParameterSet
from tests.deploy.helm import run_helm
from tests.docs.pages import PAGES, ROOT, Command, File, name_of, steps_of
from tests.e2e.kubectl import kubectl

pytestmark = pytest.mark.e2e

_NOBODY = "http://127.0.0.1:9"  # the port of discard


def lines_of(program: str) -> list[ParameterSet]:
    """Page and line of every command of a program."""
    return [
        pytest.param(page, step.line, id=f"{name_of(page)} {step.line}")
        for page in PAGES
        for step in steps_of(page)
        if isinstance(step, Command) and step.program == program
    ]


LINES = lines_of("kubectl")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory as the page on installing has it, beside a checkout."""
    shutil.copytree(ROOT / "deploy", tmp_path / "numalign" / "deploy")
    (tmp_path / "numalign" / "pods.json").touch()
    return tmp_path


def run(arguments: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory)}
    return subprocess.run(
        [kubectl(), "--server", _NOBODY, *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def objects_of(directory: Path, kustomization: str) -> Iterator[dict[str, object]]:
    built = run(["kustomize", kustomization], directory)
    assert built.returncode == 0, built.stderr
    yield from yaml.safe_load_all(built.stdout)


@pytest.mark.parametrize(("page", "line"), LINES)
def test_kubectl_reads_it(page: Path, line: str, place: Path) -> None:
    directory = place / "numalign"
    if " -k ." in line:
        directory = place / "mine"
        directory.mkdir()
        shutil.copy(ROOT / "deploy/kustomize/overlays/nri/config.yaml", directory)
        for step in steps_of(page):
            if isinstance(step, File):
                (directory / step.name).write_text(step.text)
    program, *arguments = shlex.split(re.sub(r" > \S+$", "", line).replace("$NODE", "node-1"))
    done = run(arguments, directory)

    assert program == "kubectl"
    assert done.returncode == 1, done.stdout + done.stderr
    assert "127.0.0.1:9" in done.stderr
    assert "refused" in done.stderr


def test_what_they_name_is_in_the_manifests(place: Path) -> None:
    lines = [line for _, line in (param.values for param in LINES)]
    named = {
        (kind, name)
        for line in lines
        for kind, name in re.findall(r"\b(daemonset|namespace)/([a-z0-9-]+)", str(line))
    } | {("namespace", name) for line in lines for name in re.findall(r" -n (\S+)", str(line))}
    containers = {name for line in lines for name in re.findall(r" -c (\S+)", str(line))}
    built = list(objects_of(place / "numalign", "deploy/kustomize/overlays/nri"))
    there = {(str(one["kind"]).lower(), one["metadata"]["name"]) for one in built}  # type: ignore[index]
    (daemons,) = (one for one in built if one["kind"] == "DaemonSet")
    template = daemons["spec"]["template"]["spec"]  # type: ignore[index]

    assert named
    assert named <= there
    assert containers <= {container["name"] for container in template["containers"]}


@pytest.mark.parametrize(("page", "line"), lines_of("helm"))
def test_helm_renders_what_is_typed(page: Path, line: str, place: Path) -> None:
    """An installation or upgrade is rendered instead, with the same arguments."""
    directory = place / "numalign"
    for step in steps_of(page):
        if isinstance(step, File):
            (directory / step.name).write_text(step.text)
    program, verb, *arguments = shlex.split(line)
    kept = [word for word in arguments if word not in {"--install", "--create-namespace"}]
    here = [str(directory / word) if (directory / word).exists() else word for word in kept]
    done = run_helm("template", *here)

    assert (program, verb) in {("helm", verb) for verb in ("install", "upgrade", "template")}
    assert done.returncode == 0, done.stderr
