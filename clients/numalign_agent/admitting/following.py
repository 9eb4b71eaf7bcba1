"""Following what Admission gives to whom: shared CPUs, lost allocations, unhealthy devices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from numalign.telemetry.logs import get_logger
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_agent.admitting.calls import AdmissionCalls
from numalign_client.errors import AdmissionError

RETRY_SECONDS = 5.0

_log = get_logger("assignments")


class AssignmentFollower:
    """Follows for as long as it runs.

    `shared` hears the shared CPUs, `changed` the UIDs of pods whose devices or allocations are
    not what they were.
    """

    def __init__(
        self,
        calls: AdmissionCalls,
        shared: Callable[[str], None],
        changed: Callable[[tuple[str, ...]], object],
    ) -> None:
        self._calls = calls
        self._shared = shared
        self._changed = changed
        self._unhealthy: frozenset[tuple[str, str, str, str]] = frozenset()

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                async for event in self._calls.client.watch_assignments():
                    self._heard(event)
            except AdmissionError as error:
                _log.warning("cannot follow", code=error.code.name, error=error.message)
            await asyncio.sleep(RETRY_SECONDS)

    def _heard(self, event: ad.WatchAssignmentsResponse) -> None:
        match event.WhichOneof("event"):
            case "shared_cpus":
                self._shared(event.shared_cpus.cpus)
            case "changed" if event.changed.problems:
                self._changed((event.changed.pod_uid,))
            case "unhealthy_devices":
                self._devices(event.unhealthy_devices)

    def _devices(self, told: pb.UnhealthyDevices) -> None:
        now = frozenset((d.pod_uid, d.resource, d.id, d.health) for d in told.devices)
        pods = {uid for uid, *_ in now ^ self._unhealthy}
        self._unhealthy = now
        if pods:
            self._changed(tuple(sorted(pods)))
