"""Huge pages as resources of a pod and as files of a control group. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from numalign.v1 import types_pb2 as pb

_RESOURCE = re.compile(r"hugepages-([0-9]+)([KMG])i\Z")
_FILE = re.compile(r"hugetlb\.([0-9]+[KMG]B)\.max\Z")


def page_size(resource: str) -> str | None:
    """The page size of a hugepages resource as cgroups name it: `hugepages-2Mi` is `2MB`.

    None for another resource.
    """
    found = _RESOURCE.match(resource)
    return None if found is None else f"{found[1]}{found[2]}B"


def limits_of(blocks: Iterable[pb.MemoryBlock]) -> Mapping[str, int]:
    """The bytes of huge pages that a container holds, by page size as cgroups name it."""
    limits: dict[str, int] = {}
    for block in blocks:
        size = page_size(block.resource)
        if size is not None:
            limits[size] = limits.get(size, 0) + block.size
    return limits


def sizes_of(files: Iterable[str]) -> tuple[str, ...]:
    """The page sizes that a control group can limit, by the names of its files."""
    return tuple(sorted(found[1] for name in files if (found := _FILE.match(name))))
