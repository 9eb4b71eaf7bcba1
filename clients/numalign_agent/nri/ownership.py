"""Which containers' CPUs the plugin has set itself, over its own restarts.

A runtime tells which CPUs a container has, and not who set them. What somebody else has set is
left alone, so what the plugin has set must be remembered, also where the plugin's own container
is replaced with everything in it: in the state directory. That outlives a reboot and no container
does, so the file names the boot that it is of, and of another one it says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from numalign.telemetry.logs import get_logger

_CONTAINERS, _BOOT = "containers", "boot"

_log = get_logger("nri")


class Ownership:
    """Container ids, in memory and in a file. `path` None keeps them in memory alone.

    `boot` is the id of the present boot. What a file at `before`, where earlier versions kept
    it, says is taken over once.
    """

    def __init__(self, path: Path | None, boot: str = "", before: Path | None = None) -> None:
        self._path = path
        self._boot = boot
        self._ids: set[str] = set()
        self._complained = False
        if path is None:
            return
        found = _read(path)
        if found is not None:
            self._ids = found.ids if found.boot == boot else set()
        elif before is not None and (earlier := _read(before)) is not None:
            self._ids = earlier.ids
            if self._write():
                before.unlink(missing_ok=True)

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

    def _write(self) -> bool:
        """Write the file; whether there is one and that was possible."""
        if self._path is None:
            return False
        text = json.dumps({_BOOT: self._boot, _CONTAINERS: sorted(self._ids)})
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
            return False
        self._complained = False
        return True


@dataclass(frozen=True, slots=True)
class _Found:
    """What a file says; earlier versions wrote no boot."""

    boot: str
    ids: set[str]


def _read(path: Path) -> _Found | None:
    """What a file says: nothing where it cannot be read, None where there is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return _Found(str(document.get(_BOOT, "")), set(map(str, document[_CONTAINERS])))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        _log.warning(
            "what was remembered of pinned containers cannot be read; those without a record are "
            "taken for somebody else's",
            path=str(path),
            error=str(error),
        )
        return _Found("", set())
