"""What admit handlers must know of the host once: its kernel, and whether it has AppArmor."""

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
