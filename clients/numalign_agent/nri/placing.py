"""Where one container of an admitted pod is put when it is created, and what it is given.

Separate from the events: only here is Admission asked to prepare a container, and only here
does it matter whether devices are the plugin's to hand out.
"""

from __future__ import annotations

import asyncio

from grpc import StatusCode

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.telemetry.logs import get_logger
from numalign_agent.nri.admission import Admission, NoAnswer, NotRecorded, Prepared, Refused
from numalign_agent.nri.books import Books
from numalign_agent.nri.devices import NoSuchDevice, apply_edits
from numalign_agent.nri.known import KnownContainer, KnownPod
from numalign_agent.nri.plan.abilities import hands_on_cdi
from numalign_agent.nri.plan.pinning import Pinning
from numalign_agent.nri.reporter import Reporter
from numalign_agent.nri.settings import NriSettings
from numalign_agent.nri.wire.errors import CallFailed

_PREPARING_SECONDS = 40.0
"""A device plugin may take half a minute to make a device ready."""

_log = get_logger("nri")


class Placing:
    """Prepares containers. What takes longer than the runtime waits goes on, for its next try."""

    def __init__(
        self, books: Books, admission: Admission, reporter: Reporter, settings: NriSettings
    ) -> None:
        self._books = books
        self._admission = admission
        self._reporter = reporter
        self._settings = settings
        self._runtime = ("", "")
        self._preparing: dict[tuple[str, str], asyncio.Task[Prepared]] = {}

    def runtime_is(self, name: str, version: str) -> None:
        """What runtime there is."""
        self._runtime = (name, version)

    async def close(self) -> None:
        """Give up what is still being prepared."""
        tasks = tuple(self._preparing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def place(
        self,
        pod: KnownPod,
        container: KnownContainer,
        adjust: nri.ContainerAdjustment,
        deadline: float,
    ) -> Pinning | None:
        """Where a container is to run; huge pages and devices are written into `adjust`.

        None leaves it alone. `deadline` is by the event loop's clock. Without an answer until
        then it is put where the record of its pod says, or else in the shared pool; a container
        that holds devices cannot start without them. Raises CallFailed then.
        """
        found = self._books.record_of(pod, container.name)
        if found is None:
            return self._books.wanted(pod, container.name)
        uid, record = found
        needs_devices = self._settings.inject_devices and container.name in record.with_devices
        try:
            prepared = await self._prepared(uid, container.name, deadline, keep=needs_devices)
        except NotRecorded:
            self._books.not_recorded(uid)
            return self._books.wanted(pod, container.name)
        except (NoAnswer, Refused) as error:
            if needs_devices:
                message = f"devices of container {container.name} are not ready: {error}"
                raise CallFailed(StatusCode.UNAVAILABLE, message) from error
            late = isinstance(error, NoAnswer) and not error.in_time
            self._reporter.undecided(pod.as_agent_pod, str(error), too_late=late)
            return self._books.wanted(pod, container.name)
        await self._adjust(container.name, prepared, adjust)
        wanted = self._books.wanted(pod, container.name)
        if prepared.pinning.exclusive or wanted is None:
            return prepared.pinning
        # Shared CPUs are those of this moment, less what was given away since.
        return wanted

    async def _prepared(self, uid: str, container: str, deadline: float, *, keep: bool) -> Prepared:
        left = max(deadline - asyncio.get_running_loop().time(), 0.0)
        if not keep:
            if not left:
                raise NoAnswer("no time is left to ask")
            return await self._admission.prepare(uid, container, left)
        key = (uid, container)
        task = self._preparing.get(key)
        if task is None:
            task = asyncio.create_task(self._admission.prepare(uid, container, _PREPARING_SECONDS))
            self._preparing[key] = task
        try:
            async with asyncio.timeout(left):
                prepared = await asyncio.shield(task)
        except TimeoutError:
            raise NoAnswer("they are being made ready", in_time=False) from None
        finally:
            if task.done():
                self._preparing.pop(key, None)
        return prepared

    async def _adjust(
        self, container: str, prepared: Prepared, adjust: nri.ContainerAdjustment
    ) -> None:
        for page_size, limit in sorted(prepared.hugepages.items()):
            adjust.linux.resources.hugepage_limits.add(page_size=page_size, limit=limit)
        if not self._settings.inject_devices:
            return
        name, version = self._runtime
        if prepared.edits.cdi_devices and not hands_on_cdi(name, version):
            raise CallFailed(
                StatusCode.FAILED_PRECONDITION,
                f"container {container} needs CDI device {prepared.edits.cdi_devices[0]}, which "
                f"{name} {version} does not take from a plugin; containerd 2.1 and CRI-O 1.34 do",
            )
        try:
            await asyncio.to_thread(apply_edits, adjust, prepared.edits, self._settings.host_root)
        except NoSuchDevice as error:
            raise CallFailed(
                StatusCode.FAILED_PRECONDITION, f"container {container}: {error}"
            ) from error
