"""The bundle as a file: a compressed tar that its owner alone can read."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path


def write_bundle(path: Path, files: Mapping[str, str], time: int) -> None:
    """Write `files`, text by name, into a directory of the bundle's own name. Raises OSError."""
    directory = path.name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in files.items():
            data = text.encode()
            member = tarfile.TarInfo(f"{directory}/{name}")
            member.size, member.mode, member.mtime = len(data), 0o600, time
            archive.addfile(member, io.BytesIO(data))
