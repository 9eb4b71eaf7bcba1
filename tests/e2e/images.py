"""Container images made from files of this machine: an OCI layout in a tar, without a registry."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def write_image(
    path: Path, name: str, files: Mapping[str, Path], links: Mapping[str, str], entry: Sequence[str]
) -> None:
    """Write an image called `name`: `files` by their place in it, symbolic `links` likewise."""
    layer = _layer(files, links)
    blobs: dict[str, bytes] = {}

    def blob(media_type: str, data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": list(entry), "Env": ["PATH=/bin"]},
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"],
        },
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": blob(_CONFIG, json.dumps(config).encode()),
        "layers": [blob(_LAYER, gzip.compress(layer, mtime=0))],
    }
    described = blob(_MANIFEST, json.dumps(manifest).encode())
    described["annotations"] = {"io.containerd.image.name": name}
    index = {"schemaVersion": 2, "manifests": [described]}
    with tarfile.open(path, "w") as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        _add(tar, "index.json", json.dumps(index).encode())
        for digest, data in blobs.items():
            _add(tar, f"blobs/sha256/{digest}", data)


def _layer(files: Mapping[str, Path], links: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for directory in sorted({str(Path(place).parent) for place in (*files, *links)} - {"."}):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for place, source in files.items():
            _add(tar, place, source.read_bytes(), mode=0o755)
        for place, target in links.items():
            entry = tarfile.TarInfo(place)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))
