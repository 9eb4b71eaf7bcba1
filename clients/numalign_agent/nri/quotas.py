"""Keeping CFS quotas off the pods of containers with exclusive CPUs (CPU-87).

A runtime is told for a container, and takes it; of the pod's own group it is not told, and the
kubelet sets a quota there at every resize. So it is written here, and looked at again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.cgroups.quota import QuotaReport, lift_quotas
from numalign_agent.cgroups.tree import CgroupTree
from numalign_agent.nri.metrics import LIFTED_QUOTAS

_log = get_logger("nri")


class Quotas:
    """Lifts quotas below a mounted cgroup file system; what stays wrong is told once."""

    def __init__(self, root: Path, metrics: Metrics) -> None:
        self._tree = CgroupTree(root)
        self._lifted = metrics.counter(LIFTED_QUOTAS)
        self._told: frozenset[str] = frozenset()

    async def lift(self, cgroups_paths: Sequence[str]) -> None:
        """Take quotas off the containers in these cgroups, as the runtime writes them, and pods."""
        if not cgroups_paths:
            return
        report = await asyncio.to_thread(lift_quotas, self._tree, cgroups_paths)
        for group, limit in report.lifted:
            self._lifted.inc()
            _log.info("CFS quota lifted", group=group, quota=limit)
        self._tell(report)

    def _tell(self, report: QuotaReport) -> None:
        found = frozenset((*report.failures, *filter(None, (report.unavailable,))))
        for text in sorted(found - self._told):
            _log.warning("the CFS quota of a pod with exclusive CPUs cannot be lifted", why=text)
        self._told = found
