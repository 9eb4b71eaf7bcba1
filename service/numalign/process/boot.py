"""Which start of the machine this is.

Separate from the parts that keep what is true until the machine is started anew.
"""

from __future__ import annotations

from pathlib import Path

from numalign.errors import StartError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""The kernel's own, the same in every container of the node."""


def boot_id(stage: str) -> str:
    """The kernel's id of this boot. Raises StartError for the part that needs it."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError as error:
        raise StartError(stage, f"boot id {_BOOT_ID}: {error}") from error
