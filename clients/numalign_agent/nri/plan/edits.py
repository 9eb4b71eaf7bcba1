"""What a device plugin wants changed in a container, in the runtime's words."""

from __future__ import annotations

import stat

_READ, _WRITE = 0o444, 0o222


def mount_options(read_only: bool) -> tuple[str, ...]:
    """Options of a bind mount, as the kubelet's own mounts have them."""
    return ("rbind", "rprivate", "ro" if read_only else "rw")


def device_type(mode: int) -> str | None:
    """`c` or `b` for the mode of a device node; None for anything else."""
    if stat.S_ISCHR(mode):
        return "c"
    return "b" if stat.S_ISBLK(mode) else None


def device_mode(mode: int, permissions: str) -> int:
    """The permission bits of the node in the container: the host's, less what is not granted.

    Runtimes read off these bits what the device cgroup allows.
    """
    allowed = (_READ if "r" in permissions else 0) | (_WRITE if "w" in permissions else 0)
    return stat.S_IMODE(mode) & allowed
