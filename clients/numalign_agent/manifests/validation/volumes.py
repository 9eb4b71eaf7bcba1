"""Checks on volumes."""

from __future__ import annotations

from typing import Any

from numalign.kube.names import check_label
from numalign.kube.violations import duplicate, required, unsupported
from numalign_agent.manifests.validation.words import (
    Problems,
    forbidden,
    wrong_number,
)

Document = dict[str, Any]

_HOST_PATHS = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MAX_MODE = 0o777


def check_volumes(spec: Document) -> Problems:
    """Names, and that each volume says exactly once what it is."""
    names: set[str] = set()
    for index, volume in enumerate(spec.get("volumes", ())):
        path = f"spec.volumes[{index}]"
        name = volume.get("name", "")
        if not name:
            yield required(f"{path}.name")
        else:
            yield from check_label(f"{path}.name", name)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        kinds = sorted(volume.keys() - {"name"})
        for kind in kinds[1:]:
            yield forbidden(f"{path}.{kind}", "may not specify more than 1 volume type")
        yield from _check_inside(volume, path, spec)


def _check_inside(volume: Document, path: str, spec: Document) -> Problems:
    if "hostPath" in volume:
        yield from _check_host_path(volume["hostPath"], f"{path}.hostPath")
    for kind in ("secret", "configMap", "downwardAPI", "projected"):
        mode = volume.get(kind, {}).get("defaultMode", 0)
        if not 0 <= mode <= _MAX_MODE:
            detail = "must be a number between 0 and 0777 (octal), both inclusive"
            yield wrong_number(f"{path}.{kind}.defaultMode", mode, detail)
    for index, source in enumerate(volume.get("projected", {}).get("sources", ())):
        at = f"{path}.projected.sources[{index}]"
        kinds = sorted(source)
        if not kinds:
            yield required(at, "must specify a projection type")
        for kind in kinds[1:]:
            yield forbidden(f"{at}.{kind}", "may not specify more than 1 volume type per source")
        if "serviceAccountToken" in source and not spec.get("serviceAccountName"):
            detail = "must not be specified when serviceAccountName is not set"
            yield forbidden(f"{at}.serviceAccountToken", detail)


def _check_host_path(source: Document, path: str) -> Problems:
    place = source.get("path", "")
    if not place:
        yield required(f"{path}.path")
    elif ".." in place.split("/"):
        yield forbidden(f"{path}.path", "must not contain '..'")
    if source.get("type", "") not in _HOST_PATHS:
        yield unsupported(f"{path}.type", source["type"], _HOST_PATHS)
