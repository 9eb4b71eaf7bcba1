"""Topology hints, as providers give them and the merge returns them.

Five absences are distinct, because each decides merges differently (TM-20): no mapping at
all, an empty mapping, no list for a resource, an empty list, and a hint without affinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from numalign.model.numa_mask import NumaMask


@dataclass(frozen=True, slots=True)
class TopologyHint:
    """NUMA nodes that could hold a request, and whether that is as good as it gets.

    `mask` None means no affinity: any node will do. The zero value is (None, False).
    """

    mask: NumaMask | None
    preferred: bool


NO_HINT = TopologyHint(None, False)
"""What a lookup of an unknown container returns (TM-50)."""

HintList: TypeAlias = tuple[TopologyHint, ...] | None
"""The hints for one resource: None is "no preference", () is "cannot be placed"."""

ProviderHints: TypeAlias = Mapping[str, HintList] | None
"""What one provider answers: None is no mapping, {} an empty one; else resource to list."""
