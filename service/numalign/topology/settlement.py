"""Bringing the record of admitted pods and the books of the providers to say the same.

Whenever a provider answers for the first time, or has fitted its books to another machine or
configuration, it is told the picture and tells what every pod holds. What it has lost it gets
back from the record; what it cannot have, the record loses too, with a problem that names it.
Where the record itself was lost, the pods that providers hold are kept, as strays, until an
agent admits them again or has said that they are gone.

Separate from the manager, which decides on one pod at a time.

Invariants: the record never says that a pod holds what a provider that has answered does not
hold for it; a stray is released only over a complete list of an agent's pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

from numalign.errors import SpecChanged
from numalign.model.ids import PodUid
from numalign.model.pod import Pod
from numalign.provider.pod_cache import PodCache
from numalign.topology.agreement import Elsewhere, add_problem, agrees, followed
from numalign.topology.picture import Picture
from numalign.topology.provider_handle import ProviderDown, ProviderHandle, served_by
from numalign.topology.records import Admitted, Records
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

_BATCH_BYTES = 1 << 20
"""How much of the record goes into one message; gRPC takes 4 MiB."""

_NOTHING = hp.PodHolding()

Holdings = dict[PodUid, hp.PodHolding]
Started = dict[PodUid, set[str]]


class Settlement:
    """Keeps record and books together. Called with the node's turn held.

    `whole` says whether the record is known to name every pod; `note_whole` makes that
    durable. `trusted` False: the record says nothing about what pods hold, as in a kubelet
    that judges them again, and nothing is settled.
    """

    def __init__(
        self,
        *,
        records: Records,
        picture: Picture,
        pods: PodCache,
        whole: bool,
        note_whole: Callable[[], Awaitable[None]],
        trusted: bool,
        config_generation: int,
    ) -> None:
        self._records = records
        self._picture = picture
        self._pods = pods
        self._whole = whole or not trusted
        self._note_whole = note_whole
        self._trusted = trusted
        self._strays: dict[str, Holdings] = {}
        self._claims: dict[str, frozenset[PodUid]] = {}
        self._following = asyncio.Lock()
        self.config_generation = config_generation

    @property
    def whole(self) -> bool:
        """Whether the record names every pod that holds anything."""
        return self._whole

    @property
    def strays(self) -> frozenset[PodUid]:
        """The pods that providers hold and the record does not name."""
        return frozenset(uid for held in self._strays.values() for uid in held)

    def reports(self) -> tuple[str, ...]:
        """A line for every stray."""
        by_provider = sorted(dict(self._strays).items())  # the metrics page has its own thread
        return tuple(
            f"pod {uid}: not in the record, which was lost; the providers "
            f"{', '.join(name for name, held in by_provider if uid in held)} "
            "keep what it holds until an agent says what it is"
            for uid in sorted({uid for _, held in by_provider for uid in held})
        )

    async def introduce(self, handle: ProviderHandle, others: Iterable[ProviderHandle]) -> None:
        """Tell a provider the picture, hear what it holds, and settle the differences.

        `others` are all providers. Raises ProviderDown.
        """
        handles = tuple(others)
        taken = await handle.introduce(self._request())
        if not self._trusted or not handle.built_in or not taken.HasField("holdings"):
            return
        try:
            await self._settle(handle, handles, taken)
        except BaseException:
            # It knows the picture, but the record does not know it yet.
            handle.instance_id = ""
            raise

    async def _settle(
        self,
        handle: ProviderHandle,
        handles: tuple[ProviderHandle, ...],
        taken: hp.HintProviderReconcileResponse,
    ) -> None:
        held = _by_pod(taken.holdings)
        started = self._started()
        elsewhere = served_by(handle for handle in handles if not handle.built_in)
        wanting = sorted(self._wanting(handle.name, held, started, elsewhere), key=_is_wide)
        lost: dict[PodUid, list[hp.LostAllocation]] = {}
        for batch in _batches(wanting):
            request = self._request()
            request.recorded_pods.extend(batch)
            taken = await self._again(handle, request)
            held = _by_pod(taken.holdings)
            for each in taken.lost:
                lost.setdefault(PodUid(each.pod_uid), []).append(each)
        # Providers are introduced side by side, and each changes its part of a record.
        async with self._following:
            for recorded in wanting:
                uid = PodUid(recorded.pod_uid)
                admitted = self._records.require(uid)
                changed = followed(
                    handle.name,
                    admitted.message,
                    held.get(uid, _NOTHING),
                    lost.get(uid, ()),
                    frozenset(recorded.finished_containers),
                    elsewhere,
                )
                if changed != admitted.message:
                    after = Admitted(admitted.admission_id, admitted.pod, changed)
                    await self._records.change(after)
        self._strays[handle.name] = {
            uid: holding for uid, holding in held.items() if self._records.get(uid) is None
        }
        await self._look_whether_whole(handles)

    async def take_over(
        self, pod: Pod, data: bytes, handles: Iterable[ProviderHandle]
    ) -> pb.AdmissionRecord:
        """What a stray that an agent names holds, as a record without owner and number.

        Raises SpecChanged where a provider says that it holds another amount than the pod asks
        for: then it is not the pod that was admitted.
        """
        record = pb.AdmissionRecord(
            pod_uid=pod.uid,
            allocations=[pb.ContainerAllocation(container=c.name) for c in pod.all_containers()],
        )
        known = {allocation.container: allocation for allocation in record.allocations}
        for handle in handles:
            if not handle.built_in:
                continue
            request = self._request()
            request.recorded_pods.append(hp.RecordedPod(pod_uid=pod.uid, pod=data))
            taken = await self._again(handle, request)
            holding = _by_pod(taken.holdings).get(pod.uid, hp.PodHolding())
            for allocation in holding.allocations:
                if allocation.container not in known:
                    raise _another(pod, allocation.container, "the pod has no such container")
                known[allocation.container].MergeFrom(allocation)
            record.pod_allocation.MergeFrom(holding.pod_allocation)
            for each in taken.lost:
                if each.differs:
                    raise _another(pod, each.container, each.message)
                add_problem(record, handle.name, each.container, each.message)
        return record

    def unclaimed(self, owner: str, named: Iterable[PodUid], *, ready: bool) -> tuple[PodUid, ...]:
        """The strays that are to be released, now that an owner has said which pods it has.

        None before its list is complete (`ready`), and none that another owner has named.
        """
        self._claims[owner] = frozenset(named)
        if not ready:
            return ()
        claimed = frozenset().union(*self._claims.values())
        return tuple(sorted(self.strays - claimed))

    async def forget(self, pod_uids: Iterable[PodUid], handles: Iterable[ProviderHandle]) -> None:
        """These pods are strays no longer: they are recorded, or released."""
        gone = frozenset(pod_uids)
        if self.strays & gone:
            for name, held in self._strays.items():
                self._strays[name] = {uid: h for uid, h in held.items() if uid not in gone}
            await self._look_whether_whole(tuple(handles))

    def finished(self, admitted: Admitted) -> frozenset[str]:
        """The pod's init containers that have ended, since a container behind was started."""
        return self._finished(admitted, self._started())

    def _request(self) -> hp.HintProviderReconcileRequest:
        records = {a.pod_uid: a for a in self._records.all()}
        active = self._picture.active
        return hp.HintProviderReconcileRequest(
            active_pods=[
                hp.ActivePod(
                    pod_uid=uid,
                    containers=self._names(a),
                )
                for uid, a in records.items()
                if uid in active
            ],
            committed_admission_ids=[a.admission_id for a in records.values()],
            sources_ready=self._picture.sources_ready and self._whole,
            running_containers=self._picture.running,
            record_lost=not self._whole,
            with_holdings=self._trusted,
        )

    def _wanting(
        self, provider: str, held: Holdings, started: Started, elsewhere: Elsewhere
    ) -> Iterator[hp.RecordedPod]:
        """The pods that the provider holds other things for than recorded.

        Also those that another configuration placed: they may lack what they would get now.
        """
        for admitted in self._records.all():
            record = admitted.message
            finished = self._finished(admitted, started)
            holding = held.get(admitted.pod_uid, _NOTHING)
            placed_before = record.config_generation != self.config_generation
            if placed_before or not agrees(provider, record, holding, finished, elsewhere):
                yield hp.RecordedPod(
                    pod_uid=record.pod_uid,
                    allocations=_apps_first(record),
                    pod_allocation=record.pod_allocation,
                    finished_containers=sorted(finished),
                    pod=admitted.pod if placed_before else b"",
                )

    def _names(self, admitted: Admitted) -> list[str]:
        listed = admitted.message.containers
        if listed:
            return [container.name for container in listed]
        return [container.name for container in self._pods.decode(admitted.pod).all_containers()]

    def _started(self) -> Started:
        """The containers of each pod that have been started."""
        started: Started = {}
        for _, uid, name in self._records.containers():
            started.setdefault(uid, set()).add(name)
        return started

    def _finished(self, admitted: Admitted, started: Started) -> frozenset[str]:
        """Init containers that have ended, since a container behind them was started."""
        names = started.get(admitted.pod_uid)
        if not names:
            return frozenset()
        finished: set[str] = set()
        before: list[str] = []
        for container in self._pods.decode(admitted.pod).all_containers():
            if container.name in names:
                finished.update(before)
            if container.is_regular_init:
                before.append(container.name)
        return frozenset(finished)

    async def _again(
        self, handle: ProviderHandle, request: hp.HintProviderReconcileRequest
    ) -> hp.HintProviderReconcileResponse:
        taken = await handle.call(lambda: handle.stub.Reconcile(request, timeout=handle.timeout))
        if taken.instance_id != handle.instance_id:
            handle.instance_id = ""
            raise ProviderDown(handle.name, "restarted while it was told the picture")
        return taken

    async def _look_whether_whole(self, handles: tuple[ProviderHandle, ...]) -> None:
        if self._whole or self.strays:
            return
        if all(handle.name in self._strays for handle in handles if handle.built_in):
            await self._note_whole()
            self._whole = True


def _another(pod: Pod, container: str, message: str) -> SpecChanged:
    field = f"spec.containers[{container}].resources" if container else "spec.resources"
    return SpecChanged(
        field,
        f'{field}: pod "{pod.uid}" runs with something else ({message}); release it first',
    )


def _by_pod(holdings: hp.PodHoldings) -> Holdings:
    return {PodUid(holding.pod_uid): holding for holding in holdings.pods}


def _apps_first(record: pb.AdmissionRecord) -> list[pb.ContainerAllocation]:
    """What runs on comes before what has ended or will end."""
    ending = {c.name for c in record.containers if c.kind == pb.CONTAINER_KIND_INIT}
    return sorted(record.allocations, key=lambda allocation: allocation.container in ending)


def _is_wide(recorded: hp.RecordedPod) -> bool:
    """Whether the pod has memory over several nodes: it finds room where the others leave it."""
    blocks = (*recorded.pod_allocation.memory, *(b for a in recorded.allocations for b in a.memory))
    return any(len(block.numa_nodes) > 1 for block in blocks)


def _batches(pods: Iterable[hp.RecordedPod]) -> Iterator[list[hp.RecordedPod]]:
    batch: list[hp.RecordedPod] = []
    size = 0
    for pod in pods:
        batch.append(pod)
        size += pod.ByteSize()
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
