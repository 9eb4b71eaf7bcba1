"""What the figures were taken on, in words that name no machine."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import grpc


def surroundings(state: Path) -> dict[str, str]:
    """Processors, kernel, versions, and the file system of `state`, where state files go."""
    return {
        "processors": f"{len(os.sched_getaffinity(0))} x {_processor()}",
        "kernel": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "python": platform.python_version(),
        "grpcio": grpc.__version__,
        "file system of the state": _file_system(state.resolve()),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _file_system(path: Path) -> str:
    """The type of what is mounted nearest above `path`."""
    best, found = "", "unknown"
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, *_ = line.split()
        inside = path == Path(point) or Path(point) in path.parents
        if inside and len(point) >= len(best):
            best, found = point, kind
    return found
