"""The directory in which plugins of any type are looked for: made where it is not there.

Separate from those who look, because several do: device plugins and DRA drivers share it.
"""

from __future__ import annotations

from pathlib import Path

from numalign.errors import StartError

_MODE = 0o755


def make_watched(directory: Path, stage: str) -> None:
    """See that `directory` is there. Raises StartError of `stage`, naming it."""
    try:
        if not directory.is_dir():
            # Another service that starts just now may be first, and means the same.
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(_MODE)
    except OSError as error:
        raise StartError(stage, f"plugins registry {directory}: {error}") from error
