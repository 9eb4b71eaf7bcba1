"""What the kernel says of NUMA nodes, CPUs and memory, as it says it. Reads files, never fails.

A file that is not there or cannot be read is left out: which ones there are differs by machine.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

_FILES = (
    "proc/meminfo",
    "proc/cmdline",
    "sys/devices/system/node/online",
    "sys/devices/system/node/possible",
    "sys/devices/system/node/has_cpu",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/offline",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/smt/active",
)
_PATTERNS = (
    "sys/devices/system/node/node*/cpulist",
    "sys/devices/system/node/node*/distance",
    "sys/devices/system/node/node*/meminfo",
    "sys/devices/system/node/node*/hugepages/*/*hugepages",
    "sys/devices/system/cpu/cpu*/topology/*_id",
    "sys/devices/system/cpu/cpu*/topology/thread_siblings_list",
    "sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list",
)
_MOST_BYTES = 64 << 10


def machine_facts(root: Path = Path("/")) -> Mapping[str, str]:
    """Contents of the files below `root`, by path; `uname` is who the kernel is."""
    paths = [root / name for name in _FILES]
    for pattern in _PATTERNS:
        paths += sorted(root.glob(pattern))
    found = {"uname": " ".join(platform.uname())}
    for path in paths:
        try:
            with path.open("rb") as file:
                data = file.read(_MOST_BYTES)
        except OSError:
            continue
        found[str(path.relative_to(root))] = data.decode(errors="replace")
    return found
