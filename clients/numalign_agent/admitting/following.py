"""Following what Admission gives to whom: shared CPUs, lost allocations, unhealthy devices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from numalign.telemetry.logs import get_logger
from numalign.v1 import admission_pb2 as ad
from numalign_agent.admitting.calls import AdmissionCalls
from numalign_agent.placements.devices import HeldDevices
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
        devices: HeldDevices,
        changed: Callable[[tuple[str, ...]], object],
    ) -> None:
        self._calls = calls
        self._shared = shared
        self._devices = devices
        self._changed = changed

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
                pods = self._devices.heard(event.unhealthy_devices.devices)
                if pods:
                    self._changed(pods)
