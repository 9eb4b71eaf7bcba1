"""Memory, filesystems and processes of the node at this moment (EVI-8).

Separate from the discovery of the machine, which happens once: this is read every few seconds.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from numalign.admission.handlers.eviction_signals import FsStats, MemoryStats, NodeStats

_MEMINFO = re.compile(r"^(MemTotal|MemFree|Inactive\(file\)):\s*([0-9]+) kB$", re.MULTILINE)
_KIB = 1024


def read_node_stats(root: Path, node_fs: Path, image_fs: Path | None) -> NodeStats:
    """The stats of the node whose root file system is at `root`; what cannot be read is unknown.

    `node_fs` and `image_fs` are directories of the node; without `image_fs`, images share the
    filesystem of the pods.
    """
    node = _fs(root, node_fs)
    image = node if image_fs is None else _fs(root, image_fs)
    return NodeStats(
        memory=_memory(root),
        node_fs=node,
        image_fs=image,
        container_fs=image,
        max_pid=_max_pid(root),
        processes=_processes(root),
    )


def _memory(root: Path) -> MemoryStats:
    """Working set as the kubelet counts it: all that is used, without inactive file pages."""
    found = {name: int(kib) * _KIB for name, kib in _MEMINFO.findall(_text(root, "proc/meminfo"))}
    if len(found) < 3:
        return MemoryStats()
    available = found["MemFree"] + found["Inactive(file)"]
    return MemoryStats(available=available, working_set=found["MemTotal"] - available)


def _fs(root: Path, directory: Path) -> FsStats:
    try:
        stats = os.statvfs(root / directory.relative_to("/"))
    except OSError:
        return FsStats()
    return FsStats(
        available=stats.f_bavail * stats.f_frsize,
        capacity=stats.f_blocks * stats.f_frsize,
        inodes_free=stats.f_ffree,
        inodes=stats.f_files,
    )


def _max_pid(root: Path) -> int | None:
    """The lower of the two limits of the kernel."""
    limits = [
        int(text)
        for text in (
            _text(root, "proc/sys/kernel/pid_max").strip(),
            _text(root, "proc/sys/kernel/threads-max").strip(),
        )
        if text.isdecimal()
    ]
    return min(limits, default=None)


def _processes(root: Path) -> int | None:
    """How many tasks there are, from the fourth word of loadavg: `running/all`."""
    words = _text(root, "proc/loadavg").split()
    count = words[3].partition("/")[2] if len(words) > 3 else ""
    return int(count) if count.isdecimal() else None


def _text(root: Path, path: str) -> str:
    """The text of a file; empty where it cannot be read."""
    try:
        return (root / path).read_text(encoding="utf-8")
    except OSError:
        return ""
