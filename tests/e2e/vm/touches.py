"""A program that touches memory and says where it is: one line of JSON, then it waits.

It ends with 3 at the end of its input. Only the standard library: it runs under `-I`.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path

_SIZE = 8 << 20
_HUGE_PAGE = 2 << 20
_MAP_HUGETLB = 0x40000


def main() -> None:
    plain = mmap.mmap(-1, _SIZE)
    for at in range(0, _SIZE, mmap.PAGESIZE):
        plain[at] = 1
    told = {
        **_status(),
        "affinity": sorted(os.sched_getaffinity(0)),
        "cgroup": Path("/proc/self/cgroup").read_text().strip(),
        "plain": _nodes_of(lambda fields: f"dirty={_SIZE // mmap.PAGESIZE}" in fields),
        "huge": _huge_pages(),
    }
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()
    sys.stdin.read()
    sys.exit(3)


def _huge_pages() -> object:
    """On which nodes huge pages come to lie, and how many can be had until they are refused."""
    pages: list[mmap.mmap] = []
    try:
        while len(pages) < 64:
            page = mmap.mmap(
                -1, _HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_HUGETLB
            )
            page[0] = 1
            pages.append(page)
    except OSError as error:
        return {
            "pages": len(pages),
            "then": error.strerror,
            "nodes": _nodes_of(lambda fields: "huge" in fields),
        }
    return {"pages": len(pages)}


def _status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {
        key.lower(): value.strip()
        for key, _, value in (line.partition(":") for line in lines)
        if key in {"Cpus_allowed_list", "Mems_allowed_list"}
    }


def _nodes_of(wanted: Callable[[list[str]], bool]) -> dict[str, int]:
    """Pages by node, of the mappings that are wanted."""
    counts: dict[str, int] = {}
    for line in Path("/proc/self/numa_maps").read_text().splitlines():
        fields = line.split()
        if not wanted(fields):
            continue
        for field in fields:
            key, _, value = field.partition("=")
            if key.startswith("N") and key[1:].isdigit():
                counts[key[1:]] = counts.get(key[1:], 0) + int(value)
    return counts


if __name__ == "__main__":
    main()
