"""The image: what is installed in it is what tests run with, and nobody's address is in it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_DOCKER = _ROOT / "deploy" / "docker"


def pins(path: Path) -> dict[str, str]:
    """The versions that a lock file names."""
    text = path.read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9._-]+)==([^ \\;]+)", text, re.MULTILINE))


def test_versions_are_those_of_the_environment() -> None:
    image, environment = pins(_DOCKER / "requirements.lock"), pins(_ROOT / "requirements.lock")

    assert image.items() <= environment.items()
    assert {"grpcio", "kubernetes", "prometheus-client", "dbus-fast"} <= image.keys()
    assert image.keys().isdisjoint({"pytest", "mypy", "grpcio-tools"})


@pytest.mark.parametrize("name", ["Dockerfile", "requirements.lock"])
def test_no_registry_is_named(name: str) -> None:
    text = (_DOCKER / name).read_text(encoding="utf-8")

    assert not re.findall(r"https?://|^--(?:extra-)?index-url|docker\.io", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        pytest.param([], [], id="that of the Dockerfile"),
        pytest.param(["BASE=a:1@sha256:2"], ["--build-arg", "PYTHON_IMAGE=a:1@sha256:2"], id="own"),
    ],
)
def test_another_base_is_passed_on(given: list[str], passed: list[str]) -> None:
    done = subprocess.run(
        ["make", "-n", "-C", _ROOT, "image", "BUILDER=builder", "IMAGE=x", *given],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (arguments,) = re.findall(r"^builder build (.*)-t x ", done.stdout, re.MULTILINE)

    assert arguments.split() == passed


def test_the_base_is_a_version_with_its_digest_and_the_user_is_not_root() -> None:
    text = (_DOCKER / "Dockerfile").read_text(encoding="utf-8")

    base = r"^ARG PYTHON_IMAGE=python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}$"
    assert re.findall(base, text, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"${PYTHON_IMAGE}"}
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["10001:10001"]
