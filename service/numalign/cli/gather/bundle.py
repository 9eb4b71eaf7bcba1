"""The bundle as a file: a compressed tar that its owner alone can read."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO


def open_bundle(path: Path) -> IO[bytes]:
    """The file, empty and for its owner alone. Raises OSError."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def directory_of(path: Path) -> str:
    """The directory that is in a bundle: the file's name without what tells its format."""
    return path.name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz")


def write_bundle(file: IO[bytes], directory: str, files: Mapping[str, str], time: int) -> None:
    """Write `files`, text by name, below a directory's name. Raises OSError."""
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in files.items():
            data = text.encode()
            member = tarfile.TarInfo(f"{directory}/{name}")
            member.size, member.mode, member.mtime = len(data), 0o600, time
            archive.addfile(member, io.BytesIO(data))
