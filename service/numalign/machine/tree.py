"""Reading single files below a root, as sysfs and /proc offer them.

The only part of the discovery that touches the file system, so that a captured tree and the
running kernel are read alike.
"""

from __future__ import annotations

from pathlib import Path

from numalign.errors import ConfigError
from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError


class Tree:
    """The files below `root`; paths are given relative to it."""

    __slots__ = ("_root",)

    def __init__(self, root: Path) -> None:
        self._root = root

    def __str__(self) -> str:
        return str(self._root)

    def path(self, path: str) -> Path:
        """Where a file is, to name it in messages."""
        return self._root / path

    def text(self, path: str) -> str | None:
        """The content without surrounding white space; None if there is no such file.

        Raises ConfigError where the file is there and cannot be read.
        """
        try:
            return (self._root / path).read_text(encoding="ascii", errors="replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._unreadable(path, error) from error

    def integer(self, path: str) -> int | None:
        """The whole number in a file; None if there is no such file."""
        text = self.text(path)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise ConfigError(
                f'{self._root / path}: must hold a whole number, not "{text}"'
            ) from None

    def cpu_list(self, path: str) -> CpuSet | None:
        """The ids of a list such as `0-3,8`, of CPUs or of nodes; None if no such file."""
        text = self.text(path)
        if text is None:
            return None
        try:
            return CpuSet.parse(text)
        except CpuSetSyntaxError as error:
            raise ConfigError(f"{self._root / path}: {error}") from None

    def numbered(self, path: str, prefix: str, suffix: str = "") -> tuple[int, ...]:
        """Numbers of the entries called prefix, number, suffix in a directory, ascending.

        Empty if there is no such directory. Raises ConfigError where it is there and cannot be
        read.
        """
        try:
            names = [entry.name for entry in (self._root / path).iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise self._unreadable(path, error) from error
        middles = (
            name[len(prefix) : len(name) - len(suffix)]
            for name in names
            if name.startswith(prefix) and name.endswith(suffix)
        )
        return tuple(sorted(int(middle) for middle in middles if middle.isdecimal()))

    def _unreadable(self, path: str, error: OSError) -> ConfigError:
        return ConfigError(f"{self._root / path}: cannot be read: {error.strerror}")
