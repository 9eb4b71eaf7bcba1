"""Which containers' CPUs the plugin has set itself, over its own restarts.

A runtime tells which CPUs a container has, and not who set them. What somebody else has set is
left alone, so what the plugin has set must be remembered. The file belongs where nothing
outlives a reboot, as no container does either: beside the sockets.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from numalign.telemetry.logs import get_logger

_KEY = "containers"

_log = get_logger("nri")


class Ownership:
    """Container ids, in memory and in a file. `path` None keeps them in memory alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._ids: set[str] = _read(path) if path is not None else set()
        self._complained = False

    def has(self, container_id: str) -> bool:
        """Whether the plugin has set this container's CPUs."""
        return container_id in self._ids

    def add(self, *container_ids: str) -> None:
        """The plugin is about to set these containers' CPUs."""
        if not self._ids.issuperset(container_ids):
            self._ids.update(container_ids)
            self._write()

    def forget(self, container_id: str) -> None:
        """A container has ended. Written with the next addition: nobody asks for it again."""
        self._ids.discard(container_id)

    def keep_only(self, there: Collection[str]) -> None:
        """These containers are all that there are."""
        kept = self._ids.intersection(there)
        if kept != self._ids:
            self._ids = kept
            self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        text = json.dumps({_KEY: sorted(self._ids)})
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            new.write_text(text, encoding="utf-8")
            new.replace(self._path)
        except OSError as error:
            if not self._complained:
                self._complained = True
                _log.error(
                    "cannot remember which containers were pinned; after a restart of the plugin "
                    "they will be taken for somebody else's",
                    path=str(self._path),
                    error=error.strerror,
                )
        else:
            self._complained = False


def _read(path: Path) -> set[str]:
    try:
        return set(map(str, json.loads(path.read_text(encoding="utf-8"))[_KEY]))
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning(
            "what was remembered of pinned containers cannot be read; those without a record are "
            "taken for somebody else's",
            path=str(path),
            error=str(error),
        )
        return set()
