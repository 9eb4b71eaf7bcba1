"""Memory and huge pages, of the machine and of one NUMA node."""

from __future__ import annotations

import re
from collections.abc import Mapping

from numalign.errors import ConfigError
from numalign.machine.tree import Tree
from numalign.model.machine import HugePages

_TOTAL = re.compile(r"MemTotal:\s*([0-9]+) kB")
_KIB = 1024


def memory_bytes(tree: Tree, path: str) -> int | None:
    """MemTotal of a meminfo file, in bytes; it includes huge pages. None if no such file.

    Raises ConfigError where the file has no such line.
    """
    text = tree.text(path)
    if text is None:
        return None
    total = _TOTAL.search(text)
    if total is None:
        raise ConfigError(f"{tree.path(path)}: has no MemTotal line")
    return int(total[1]) * _KIB


def huge_pages(tree: Tree, directory: str) -> tuple[HugePages, ...]:
    """The pools below a `hugepages` directory, empty ones included, by page size."""
    pools = []
    for size in tree.numbered(directory, "hugepages-", "kB"):
        path = f"{directory}/hugepages-{size}kB/nr_hugepages"
        count = tree.integer(path)
        if count is None:
            raise ConfigError(f"{tree.path(path)}: is missing")
        pools.append(HugePages(page_size_kib=size, count=count))
    return tuple(pools)


def free_huge_pages(tree: Tree, node: int, pools: tuple[HugePages, ...]) -> Mapping[int, int]:
    """How many pages of each of `pools` are free on a NUMA node now, by page size.

    Without those that the kernel does not tell of. Raises ConfigError where it cannot be read.
    """
    directory = f"sys/devices/system/node/node{node}/hugepages"
    counts = {
        pool.page_size_kib: tree.integer(
            f"{directory}/hugepages-{pool.page_size_kib}kB/free_hugepages"
        )
        for pool in pools
    }
    return {size: count for size, count in counts.items() if count is not None}
