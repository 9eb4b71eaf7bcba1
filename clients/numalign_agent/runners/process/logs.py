"""Where the output of containers goes: `<namespace>_<pod>_<uid>/<container>/<attempt>.out`."""

from __future__ import annotations

import contextlib
from pathlib import Path

from numalign_agent.runners.process.directory import Made


class PodLogs:
    """The files of one directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def make(self, made: Made) -> tuple[Path, Path]:
        """Standard output and error of a container, in a directory that is there afterwards."""
        directory = self._directory(made)
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        return directory / f"{made.attempt}.out", directory / f"{made.attempt}.err"

    def remove(self, made: Made) -> None:
        """Forget the output of a container, and directories that are empty then."""
        directory = self._directory(made)
        for kind in ("out", "err"):
            (directory / f"{made.attempt}.{kind}").unlink(missing_ok=True)
        for empty in (directory, directory.parent):
            with contextlib.suppress(OSError):
                empty.rmdir()

    def _directory(self, made: Made) -> Path:
        return self._root / f"{made.namespace}_{made.pod_name}_{made.pod_uid}" / made.container
