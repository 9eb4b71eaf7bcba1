"""Following what Admission has: every admission, and the shared CPUs, into the books."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from numalign.model.cpu_set import CpuSet
from numalign.model.revision import same_record
from numalign.telemetry.logs import get_logger
from numalign_agent.nri.admission import Admission, record_of
from numalign_agent.nri.books import Books

_SAY_AFTER, _SAY_EVERY = 1.0, 30.0

_log = get_logger("nri")


class Following:
    """Follows until cancelled. `known` is set once the first picture is complete.

    `revision` is the last one that was heard of. Wakes whoever settles after a picture only:
    what changes afterwards comes from the plugin's own questions, or waits for the next look.
    """

    def __init__(self, admission: Admission, books: Books, wake: Callable[[], None]) -> None:
        self._admission = admission
        self._books = books
        self._wake = wake
        self.known = asyncio.Event()
        self.revision = 0

    async def run(self) -> None:
        """Follow; interruptions are bridged by the client."""
        async for event in self._admission.changes():
            if event.revision < self.revision or (
                self.revision and not same_record(event.revision, self.revision)
            ):
                self._books.admission_started_over()
            self.revision = event.revision
            match event.WhichOneof("event"):
                case "existing":
                    self._books.recorded(event.existing.pod_uid, record_of(event.existing))
                case "changed":
                    self._books.recorded(event.changed.pod_uid, record_of(event.changed))
                case "released":
                    self._books.released(event.released.pod_uid, event.revision)
                case "shared_cpus":
                    self._books.pool_is(CpuSet.parse(event.shared_cpus.cpus))
                case "synced":
                    self.known.set()
                    self._wake()

    async def until_known(self) -> None:
        """Wait for the first picture, and say so meanwhile."""
        seconds = _SAY_AFTER
        while not self.known.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self.known.wait()
            except TimeoutError:
                _log.warning("Admission does not answer; the runtime is not connected to meanwhile")
                seconds = _SAY_EVERY
