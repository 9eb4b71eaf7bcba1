"""What admit handlers must know of the host once: its kernel, AppArmor, limits of swap."""

from __future__ import annotations

from pathlib import Path


def kernel_version(root: Path) -> str | None:
    """The version of the running kernel; None where it cannot be read (SYS-1)."""
    try:
        return (root / "proc/sys/kernel/osrelease").read_text(encoding="utf-8").strip()
    except OSError:
        return None


def app_armor_enabled(root: Path) -> bool:
    """Whether AppArmor is there and switched on (ARM-3)."""
    if not (root / "sys/kernel/security/apparmor").exists():
        return False
    try:
        text = (root / "sys/module/apparmor/parameters/enabled").read_text(encoding="utf-8")
    except OSError:
        return False
    return len(text) > 1 and text.startswith("Y")


def can_limit_swap(root: Path) -> bool:
    """Whether the swap of a cgroup can be limited: cgroup v2 with its swap controller (RSZ-3)."""
    cgroups = root / "sys/fs/cgroup"
    # The root of the hierarchy has no such limit itself.
    return (cgroups / "cgroup.controllers").exists() and any(cgroups.glob("*/memory.swap.max"))
