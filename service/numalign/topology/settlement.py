"""Bringing the record of admitted pods and the books of the providers to say the same.

Whenever a provider answers for the first time, or has fitted its books to another machine or
configuration, it is told the picture and tells what every pod holds; then both do what
`settling` says. A third party that does not tell is offered what it says it has no record of;
where it does not take that back, the pod keeps it in the record, with a problem that names it,
and no other pod is admitted with it.

Separate from the manager, which decides on one pod at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from numalign.errors import SpecChanged
from numalign.model.ids import PodUid
from numalign.model.pod import Pod
from numalign.provider.pod_cache import PodCache
from numalign.topology.agreement import add_problem, agrees, followed, shown_by
from numalign.topology.lost_parts import LostParts, Part
from numalign.topology.picture import Picture
from numalign.topology.provider_handle import ProviderDown, ProviderHandle
from numalign.topology.recorded_pods import batches, is_wide, recorded_pod
from numalign.topology.records import Admitted, Records
from numalign.topology.settling import differences, names_every_pod, told, unclaimed
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

FORGOTTEN = "the provider has no record of it any more"
"""Said of what a pod was given by a third party that has lost it and does not take it back."""

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
        self.lost_parts = LostParts()
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
        if not self._trusted:
            return
        try:
            if taken.HasField("holdings"):
                await self._settle(handle, taken)
            else:
                await self._settle_untold(handle, taken)
            await self._look_whether_whole(handles)
        except BaseException:
            # It knows the picture, but the record does not know it yet.
            handle.instance_id = ""
            raise

    async def _settle(
        self, handle: ProviderHandle, taken: hp.HintProviderReconcileResponse
    ) -> None:
        held = _by_pod(handle, taken)
        started = self._started()
        found = differences(
            self._by_uid(),
            held,
            partial(self._agrees, handle.name, started),
            placed_before=self._placed_before,
        )
        wanting = self._to_give_back(handle.name, found.give_back, started)
        lost: dict[PodUid, list[hp.LostAllocation]] = {}
        for batch in batches(wanting):
            taken = await self._again(handle, batch)
            held = _by_pod(handle, taken)
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
                )
                await self._change(admitted, changed)
        self.lost_parts.note(handle.name, {})
        self._strays[handle.name] = {uid: held[uid] for uid in found.strays}

    async def _settle_untold(
        self, handle: ProviderHandle, taken: hp.HintProviderReconcileResponse
    ) -> None:
        """Settle with a provider that says only of which pods it has no record."""
        started = self._started()
        forgotten = self._forgotten(handle, taken, started)
        for batch in batches(self._to_give_back(handle.name, forgotten, started)):
            taken = await self._again(handle, batch)
        holders: dict[Part, PodUid] = {}
        async with self._following:
            for uid, parts in self._forgotten(handle, taken, started).items():
                admitted = self._records.require(uid)
                changed = pb.AdmissionRecord()
                changed.CopyFrom(admitted.message)
                for container, names in parts.items():
                    holders.update(dict.fromkeys(names, uid))
                    text = ", ".join(f"{resource} {name}" for resource, name in names)
                    add_problem(changed, handle.name, container, f"{text}: {FORGOTTEN}")
                await self._change(admitted, changed)
        self.lost_parts.note(handle.name, holders)
        self._strays[handle.name] = {}

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
            away = handle.may_be_ignored and not handle.instance_id
            if away or handle.name not in self._strays:
                continue
            taken = await self._again(handle, [hp.RecordedPod(pod_uid=pod.uid, pod=data)])
            holding = _by_pod(handle, taken).get(pod.uid, _NOTHING)
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
        return unclaimed(self.strays, self._claims.values(), complete=ready)

    async def forget(self, pod_uids: Iterable[PodUid], handles: Iterable[ProviderHandle]) -> None:
        """These pods are strays no longer: they are recorded, or released."""
        gone = frozenset(pod_uids)
        self.lost_parts.released(gone)
        if self.strays & gone:
            for name, held in self._strays.items():
                self._strays[name] = {uid: h for uid, h in held.items() if uid not in gone}
            await self._look_whether_whole(tuple(handles))

    def finished(self, admitted: Admitted) -> frozenset[str]:
        """The pod's init containers that have ended, since a container behind was started."""
        return self._finished(admitted, self._started())

    def _request(self) -> hp.HintProviderReconcileRequest:
        recorded = self._by_uid()
        say = told(
            {uid: admitted.admission_id for uid, admitted in recorded.items()},
            self._picture.active,
            sources_ready=self._picture.sources_ready,
            whole=self._whole,
        )
        return hp.HintProviderReconcileRequest(
            active_pods=[
                hp.ActivePod(pod_uid=uid, containers=self._names(recorded[uid]))
                for uid in say.active
            ],
            committed_admission_ids=say.committed,
            sources_ready=say.complete,
            running_containers=self._picture.running,
            record_lost=say.record_lost,
            with_holdings=self._trusted,
        )

    def _by_uid(self) -> dict[PodUid, Admitted]:
        return {admitted.pod_uid: admitted for admitted in self._records.all()}

    def _placed_before(self, admitted: Admitted) -> bool:
        return admitted.message.config_generation != self.config_generation

    def _agrees(
        self, provider: str, started: Started, admitted: Admitted, holding: hp.PodHolding | None
    ) -> bool:
        finished = self._finished(admitted, started)
        return agrees(provider, admitted.message, holding or _NOTHING, finished)

    def _to_give_back(
        self, provider: str, pods: Iterable[PodUid], started: Started
    ) -> list[hp.RecordedPod]:
        """The provider's part of these pods, those with memory over several nodes last."""
        messages = []
        for admitted in map(self._records.require, pods):
            finished = self._finished(admitted, started)
            with_pod = self._placed_before(admitted)
            messages.append(recorded_pod(provider, admitted, finished, with_pod=with_pod))
        return sorted(messages, key=is_wide)

    def _forgotten(
        self,
        handle: ProviderHandle,
        taken: hp.HintProviderReconcileResponse,
        started: Started,
    ) -> dict[PodUid, dict[str, list[Part]]]:
        """What containers were given by the provider, of the pods that it has no record of."""
        forgotten: dict[PodUid, dict[str, list[Part]]] = {}
        for uid in map(PodUid, taken.unknown_pod_uids):
            admitted = self._records.get(uid)
            if admitted is None:
                continue
            finished = self._finished(admitted, started)
            for allocation in admitted.message.allocations:
                part = shown_by(handle.name, allocation)
                names = [(device.resource, i) for device in part.devices for i in device.ids]
                if names and allocation.container not in finished:
                    forgotten.setdefault(uid, {})[allocation.container] = names
        return forgotten

    async def _change(self, admitted: Admitted, changed: pb.AdmissionRecord) -> None:
        if changed != admitted.message:
            await self._records.change(Admitted(admitted.admission_id, admitted.pod, changed))

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
        self, handle: ProviderHandle, recorded: Iterable[hp.RecordedPod]
    ) -> hp.HintProviderReconcileResponse:
        """Tell a provider the picture once more, with pods that it is to take back."""
        request = self._request()
        request.recorded_pods.extend(recorded)
        taken = await handle.call(lambda: handle.stub.Reconcile(request, timeout=handle.timeout))
        if taken.instance_id != handle.instance_id:
            handle.instance_id = ""
            raise ProviderDown(handle.name, "restarted while it was told the picture")
        return taken

    async def _look_whether_whole(self, handles: Iterable[ProviderHandle]) -> None:
        if self._whole:
            return
        needed = [handle.name for handle in handles if not handle.may_be_ignored]
        if names_every_pod(self._strays, needed):
            await self._note_whole()
            self._whole = True


def _another(pod: Pod, container: str, message: str) -> SpecChanged:
    field = f"spec.containers[{container}].resources" if container else "spec.resources"
    return SpecChanged(
        field,
        f'{field}: pod "{pod.uid}" runs with something else ({message}); release it first',
    )


def _by_pod(handle: ProviderHandle, taken: hp.HintProviderReconcileResponse) -> Holdings:
    for holding in taken.holdings.pods:
        handle.signed(holding.allocations)
    return {PodUid(holding.pod_uid): holding for holding in taken.holdings.pods}
