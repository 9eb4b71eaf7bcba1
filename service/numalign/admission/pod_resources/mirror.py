"""The admitted pods as the Admission service last heard of them, followed from the record.

A copy in memory, so that readers of pod resources cost the Topology Manager nothing. It is
never behind what this service has answered: a reader waits until the copy has the revision
of the last decision that went out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Mapping

from grpc import aio

from numalign.errors import Unavailable
from numalign.model.revision import has_seen, latest
from numalign.telemetry.logs import get_logger
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1 import types_pb2 as pb

RETRY_SECONDS = 0.5
"""How long to wait before a record that cannot be followed is tried again."""

READ_SECONDS = 2.0
"""How long a reader waits for the copy to be complete and up to date."""

_log = get_logger("pod-resources")


class AdmissionMirror:
    """Follows one Topology Manager from `start` to `close`.

    `with_pods`: the pods themselves are followed, too.
    """

    def __init__(
        self, topology: tm_grpc.TopologyManagerAsyncStub, *, with_pods: bool = False
    ) -> None:
        self._topology = topology
        self._with_pods = with_pods
        self._pods: dict[str, pb.AdmissionRecord] = {}
        self._specs: dict[str, bytes] = {}
        self._revision = 0
        self._answered = 0
        self._complete = False
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to follow."""
        if self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Stop following."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
            self._following = None

    def answered(self, revision: int) -> None:
        """A decision of this revision went out: readers must see it from now on."""
        self._answered = latest(self._answered, revision)

    async def pods(self) -> Mapping[str, pb.AdmissionRecord]:
        """The admitted pods by UID, in order of admission.

        Raises Unavailable where the record cannot be followed, or is slow to tell.
        """
        if not self._is_current():
            try:
                async with asyncio.timeout(READ_SECONDS):
                    while not self._is_current():
                        await self._changed.wait()
            except TimeoutError:
                raise Unavailable(
                    "topology manager: the record of admissions cannot be followed"
                ) from None
        return self._pods

    @property
    def revision(self) -> int:
        """The revision up to which the copy goes."""
        return self._revision

    def spec(self, pod_uid: str) -> bytes:
        """The bytes of a pod as it was admitted; empty for a pod that is gone."""
        return self._specs.get(pod_uid, b"")

    def known(self, pod_uid: str) -> pb.AdmissionRecord | None:
        """One pod as it stands in the copy."""
        return self._pods.get(pod_uid)

    def _is_current(self) -> bool:
        return self._complete and has_seen(self._revision, self._answered)

    async def _follow(self) -> None:
        while True:
            stream = self._topology.WatchAdmissions(
                tm.WatchAdmissionsRequest(with_pods=self._with_pods)
            )
            try:
                await self._take(stream)
            except aio.AioRpcError as error:
                _log.debug("admissions cannot be followed", error=error.details())
            finally:
                stream.cancel()
            self._complete = False
            await asyncio.sleep(RETRY_SECONDS)

    async def _take(self, stream: AsyncIterable[tm.WatchAdmissionsResponse]) -> None:
        promised = self._answered
        picture: dict[str, pb.AdmissionRecord] = {}
        specs: dict[str, bytes] = {}
        async for response in stream:
            event = response.event
            match event.WhichOneof("event"):
                case "existing":
                    picture[event.existing.pod_uid] = event.existing
                    specs[event.existing.pod_uid] = response.pod
                case "synced":
                    if not has_seen(event.revision, promised):
                        # Another record than the one that was promised from: it began anew.
                        self._answered = event.revision
                    self._pods, self._specs, self._complete = picture, specs, True
                case "changed":
                    self._pods[event.changed.pod_uid] = event.changed
                    self._specs[event.changed.pod_uid] = response.pod
                case "released":
                    self._pods.pop(event.released.pod_uid, None)
                    self._specs.pop(event.released.pod_uid, None)
            self._revision = event.revision
            self._changed.set()
            self._changed = asyncio.Event()
