"""Where things live when the configuration does not say, and what reading it may ask for.

Separate so that turning a document into settings is a pure function of the document and
these values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from numalign.config.settings import MachineSource

_NAME = "numalign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Directories:
    """Default directories; None where the environment gives no safe place."""

    runtime: Path | None
    state: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a document is completed with.

    Relative paths are taken from `base_directory`. `read_file` decodes a file that the
    configuration refers to; `memory_capacity` gives the memory of a machine in bytes. Both
    may raise ConfigError, and neither is called unless the document needs it.
    """

    directories: Directories
    base_directory: Path
    read_file: Callable[[Path], object]
    memory_capacity: Callable[[MachineSource], int]


def default_directories(env: Mapping[str, str], is_root: bool) -> Directories:
    """The directories for sockets and state, by user and XDG base directories.

    Anybody but root keeps the state in `$XDG_STATE_HOME` or `~/.local/state`, and the sockets
    in `$XDG_RUNTIME_DIR`, else beside the state: both are private to the user, as a name in
    /tmp that others can guess would not be.
    """
    if is_root:
        return Directories(runtime=Path("/run") / _NAME, state=Path("/var/lib") / _NAME)
    home = _absolute(env.get("HOME"))
    base = _absolute(env.get("XDG_STATE_HOME"))
    if base is None and home is not None:
        base = home / ".local" / "state"
    state = None if base is None else base / _NAME
    runtime = _absolute(env.get("XDG_RUNTIME_DIR"))
    if runtime is not None:
        return Directories(runtime=runtime / _NAME, state=state)
    return Directories(runtime=None if state is None else state / "run", state=state)


def _absolute(text: str | None) -> Path | None:
    """The path, unless it is unset or relative: XDG asks to ignore those."""
    path = Path(text or "")
    return path if path.is_absolute() else None
