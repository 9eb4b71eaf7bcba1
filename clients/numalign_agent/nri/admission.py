"""Asking Admission, and following what it has: its answers as the values that are kept here.

Separate from who asks, so that nobody else reads Admission's messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, TypeVar

from grpc import StatusCode

from numalign.model.cpu_set import CpuSet
from numalign.rpc.channel import open_channel
from numalign.telemetry.tracing import active_tracer
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_agent.cgroups.hugepages import limits_of
from numalign_agent.nri.known import Record, Refusal
from numalign_agent.nri.plan.pinning import Pinning
from numalign_client.asynchronous import AsyncAdmissionClient
from numalign_client.errors import AdmissionError, NotAdmitted


class NoAnswer(Exception):
    """Admission could not be asked, or did not answer in time: ask again later.

    `in_time` is False where it was the time that ran out.
    """

    def __init__(self, message: str, *, in_time: bool = True) -> None:
        super().__init__(message)
        self.in_time = in_time


class Refused(Exception):
    """Admission answers that it will not do what is asked; the text says why."""


class NotRecorded(Exception):
    """Admission does not have the pod or container."""


class Verdict(StrEnum):
    """Whether a pod may start."""

    ADMITTED = "admitted"
    REJECTED = "rejected"
    DEFERRED = "deferred"
    UNJUDGED = "unjudged"
    """Admission answers that it will not decide on what it was sent."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer. `record` is there for an admission, `refusal` for the others."""

    verdict: Verdict
    record: Record | None = None
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to apply to one container, from all providers.

    `hugepages` are bytes by page size as cgroups name it. `edits` is what device plugins want
    changed; `devices` says whether it holds any.
    """

    pinning: Pinning
    hugepages: Mapping[str, int]
    edits: pb.ContainerEdits
    devices: bool


T = TypeVar("T")

_UNJUDGED = "CannotBeJudged"

_LATER = frozenset(
    {
        StatusCode.UNAVAILABLE,
        StatusCode.DEADLINE_EXCEEDED,
        StatusCode.RESOURCE_EXHAUSTED,
        StatusCode.CANCELLED,
        StatusCode.ABORTED,
    }
)

_VERDICTS: Mapping[pb.Verdict.ValueType, Verdict] = {
    pb.VERDICT_ADMITTED: Verdict.ADMITTED,
    pb.VERDICT_REJECTED: Verdict.REJECTED,
    pb.VERDICT_DEFERRED: Verdict.DEFERRED,
}


class Admission:
    """One Admission service, asked for the pods of one owner.

    Every call takes the seconds that it may last, and raises NoAnswer.
    """

    def __init__(self, client: AsyncAdmissionClient, owner: str) -> None:
        self._client = client
        self.owner = owner
        self.hangs = False
        """Whether the last call ended because its time was over."""

    @classmethod
    def at(cls, socket: Path, owner: str) -> Self:
        """The service behind a socket; nothing is connected yet.

        Its calls have spans where tracing was started before.
        """
        channel = open_channel(socket, active_tracer())
        return cls(AsyncAdmissionClient(channel=channel), owner)

    async def close(self) -> None:
        """Close the channel."""
        await self._client.close()

    async def admit(self, pod: Mapping[str, Any], seconds: float) -> Decision:
        """Decide on a pod, given as JSON."""
        try:
            answer = await self._ask(self._client.admit(pod, owner=self.owner, timeout=seconds))
        except (Refused, NotRecorded) as error:
            return Decision(Verdict.UNJUDGED, refusal=Refusal(_UNJUDGED, str(error)))
        return _decision(answer, self.owner)

    async def prepare(self, pod_uid: str, container: str, seconds: float) -> Prepared:
        """What to apply to a container. Raises NotRecorded and Refused as well."""
        call = self._client.prepare_container(pod_uid, container, timeout=seconds)
        return _prepared(await self._ask(call))

    async def add_container(
        self, pod_uid: str, container: str, container_id: str, seconds: float
    ) -> None:
        """A container starts. Raises NotRecorded and Refused as well."""
        await self._ask(
            self._client.add_container(pod_uid, container, container_id, timeout=seconds)
        )

    async def remove_container(self, container_id: str, seconds: float) -> None:
        """A container is gone."""
        await self._ask(self._client.remove_container(container_id, timeout=seconds))

    async def release(self, pod_uid: str, seconds: float) -> int:
        """Give back what a pod holds; the revision afterwards. Raises NotRecorded as well."""
        return await self._ask(self._client.release(pod_uid, timeout=seconds))

    async def reconcile(
        self,
        active: Iterable[str],
        running: Iterable[tuple[str, str, str]],
        revision: int,
        seconds: float,
    ) -> tuple[str, ...]:
        """Have everything of this owner released that is not `active`; what was released.

        `running` are triples of container id, pod uid and container name; `revision` is the
        last one that was known when `active` was looked at. Raises Refused as well.
        """
        containers = [
            pb.RunningContainer(container_id=c, pod_uid=uid, container_name=name)
            for c, uid, name in running
        ]
        answer = await self._ask(
            self._client.reconcile(
                active,
                owner=self.owner,
                running_containers=containers,
                as_of_revision=revision,
                sources_ready=True,
                timeout=seconds,
            )
        )
        return tuple(answer.released_pod_uids)

    async def changes(self) -> AsyncIterator[ad.WatchAssignmentsResponse]:
        """Every change from now on, after the picture, without end; survives restarts."""
        async for event in self._client.watch_assignments():
            yield event

    async def _ask(self, call: Awaitable[T]) -> T:
        try:
            answer = await call
        except AdmissionError as error:
            self.hangs = error.code is StatusCode.DEADLINE_EXCEEDED
            raise _failure(error) from error
        self.hangs = False
        return answer


def record_of(message: pb.AdmissionRecord) -> Record:
    """An admission as it is kept here."""
    return _record(message.owner, message.revision, message.allocations)


def _record(owner: str, revision: int, allocations: Iterable[pb.ContainerAllocation]) -> Record:
    grants: dict[str, Pinning] = {}
    with_devices: set[str] = set()
    for allocation in allocations:
        grants[allocation.container] = _grant(allocation)
        if allocation.devices:
            with_devices.add(allocation.container)
    return Record(owner, revision, grants, frozenset(with_devices))


def _grant(allocation: pb.ContainerAllocation) -> Pinning:
    mems = CpuSet.of(node for block in allocation.memory for node in block.numa_nodes)
    cpus = CpuSet.parse(allocation.cpus)
    return Pinning(cpus, mems, exclusive=bool(cpus))


def _decision(answer: ad.AdmitResponse, owner: str) -> Decision:
    verdict = _VERDICTS[answer.verdict]
    if verdict is not Verdict.ADMITTED:
        return Decision(verdict, refusal=Refusal(answer.reason, answer.message))
    return Decision(verdict, record=_record(owner, answer.revision, answer.allocations))


def _prepared(answer: ad.PrepareContainerResponse) -> Prepared:
    hugepages = limits_of(answer.allocation.memory)
    pinning = Pinning(
        CpuSet.parse(answer.cpus), CpuSet.parse(answer.mems), exclusive=answer.exclusive_cpus
    )
    return Prepared(pinning, hugepages, answer.edits, bool(answer.allocation.devices))


def _failure(error: AdmissionError) -> Exception:
    if isinstance(error, NotAdmitted):
        return NotRecorded(str(error))
    if error.code in _LATER:
        return NoAnswer(str(error), in_time=error.code is not StatusCode.DEADLINE_EXCEEDED)
    if error.code in {StatusCode.INTERNAL, StatusCode.UNKNOWN, StatusCode.PERMISSION_DENIED}:
        return NoAnswer(f"{error} ({error.code.name})")
    return Refused(str(error))
