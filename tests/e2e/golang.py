"""Go programs built offline: Debian's toolchain and libraries, in a GOPATH of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.e2e.debian import cache_directory, unpacked

_SUITE = "trixie"
_TOOLCHAIN = ("golang-1.24-go", "golang-1.24-src")
_PLUGINS = ("protoc-gen-go", "protoc-gen-go-1-5", "protoc-gen-go-grpc")
_LIBRARIES = (
    (
        "golang-google-grpc-dev",
        "golang-google-protobuf-dev",
        "golang-google-genproto-dev",
        "golang-github-golang-protobuf-1-5-dev",
    ),
    ("golang-golang-x-net-dev", "golang-golang-x-sys-dev", "golang-golang-x-text-dev"),
    ("golang-k8s-api-dev", "golang-k8s-apimachinery-dev", "golang-k8s-klog-dev"),
    (
        "golang-k8s-utils-dev",
        "golang-k8s-sigs-json-dev",
        "golang-k8s-sigs-yaml-dev",
        "golang-k8s-sigs-structured-merge-diff-dev",
        "golang-k8s-sigs-randfill-dev",
    ),
    ("golang-github-gogo-protobuf-dev", "golang-gopkg-inf.v0-dev"),
    ("golang-github-fxamacker-cbor-dev", "golang-github-x448-float16-dev"),
    ("golang-github-google-gofuzz-dev", "golang-github-go-logr-logr-dev"),
    (
        "golang-github-json-iterator-go-dev",
        "golang-github-modern-go-concurrent-dev",
        "golang-github-modern-go-reflect2-dev",
    ),
)
"""What grpc-go and k8s.io/api import, in groups whose names fit a directory's."""

_PROTOS = Path(__file__).parents[2] / "protos"
_SECONDS = 280


@cache
def built(sources: Path, work: Path) -> Path:
    """The program of a module whose code from the contract is made by its own `generate`.

    `sources` stays as it is: it is copied. Leaves the test out where Debian's packages cannot be
    had.
    """
    module = _module_of(sources)
    place = work / "src" / module
    _copy(sources, place)
    toolchain = unpacked(_SUITE, *_TOOLCHAIN) / "usr" / "lib" / "go-1.24"
    plugins = unpacked(_SUITE, *_PLUGINS) / "usr" / "bin"
    libraries = [unpacked(_SUITE, *group) / "usr" / "share" / "gocode" for group in _LIBRARIES]
    environment = {
        **os.environ,
        "PATH": f"{plugins}:{os.environ['PATH']}",
        "PROTOC": f"{sys.executable} -m grpc_tools.protoc",
        "PROTOS": str(_PROTOS),
        "GOROOT": str(toolchain),
        "GOPATH": ":".join(str(path) for path in (work, *libraries)),
        "GOCACHE": str(cache_directory() / "go-build"),
        "GO111MODULE": "off",
        "GOFLAGS": "",
        "CGO_ENABLED": "0",
    }
    for command in (
        ["./generate"],
        [str(toolchain / "bin" / "go"), "vet", "."],
        [str(toolchain / "bin" / "go"), "build", "-o", str(work / "program"), "."],
    ):
        done = subprocess.run(
            command,
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    return work / "program"


def unformatted(sources: Path) -> str:
    """The files that gofmt would write otherwise, one a line."""
    gofmt = unpacked(_SUITE, *_TOOLCHAIN) / "usr" / "lib" / "go-1.24" / "bin" / "gofmt"
    files = sorted(str(path) for path in sources.glob("*.go"))
    return subprocess.run(
        [gofmt, "-l", *files], capture_output=True, text=True, timeout=60, check=True
    ).stdout


def _module_of(sources: Path) -> str:
    first, *_ = (sources / "go.mod").read_text(encoding="utf-8").splitlines()
    return first.removeprefix("module ").strip()


def _copy(sources: Path, place: Path) -> None:
    """The files that belong to the module."""
    place.mkdir(parents=True)
    for path in sources.iterdir():
        if path.is_file():
            (place / path.name).write_bytes(path.read_bytes())
            (place / path.name).chmod(path.stat().st_mode)
