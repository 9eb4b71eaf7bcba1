"""Looking through the plugin watcher's directory for sockets.

By looking, once per tick, and not by being told: a directory of a few sockets is read in
microseconds, a look cannot miss what happened between two others, and needs no library.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from numalign.plugins.watch_plan import Identity


def watched_sockets(directory: Path) -> dict[Path, Identity]:
    """The sockets in `directory` and below; names that begin with a dot are left out (DEV-9).

    What vanishes while it is looked at is not there. Raises OSError where `directory` itself
    cannot be read.
    """
    return dict(_below(directory))


def _below(directory: Path) -> Iterator[tuple[Path, Identity]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield from _below(Path(entry.path))
                    continue
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISSOCK(status.st_mode):
                yield Path(entry.path), (status.st_ino, status.st_mtime_ns)
