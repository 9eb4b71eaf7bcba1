"""Identifiers with types of their own, so that a pod UID is never taken for a name."""

from __future__ import annotations

from typing import NewType

PodUid = NewType("PodUid", str)
"""`metadata.uid` of a pod."""

NumaId = NewType("NumaId", int)
"""Id of a NUMA node as the machine numbers it; 0..63, not always contiguous."""

DeviceId = NewType("DeviceId", str)
"""Id of a device as its plugin names it; unique within one resource."""

AdmissionId = NewType("AdmissionId", str)
"""One admission attempt: what tentative allocations live under until commit or abort."""
