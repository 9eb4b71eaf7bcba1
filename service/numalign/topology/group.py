"""Several pods in one admission: decided one after the other, recorded together.

Separate from `decision`, whose admissions are of one pod and end with it. To the providers a
group is one admission that takes for one pod after the other:

    pod by pod     scope (hints, merge, allocate ...); refused after something was taken: that
                   pod alone leaves
    keep           Prepare to all, synced; then the rows of all pods in one synced transaction:
                   the group is committed; Commit goes out unwaited
    lost           Abort to all: nothing of it is kept

So nothing that survives a crash is new: before the rows are written the providers know of a
part that is tentative or prepared, as of any admission, and drop it unless the record names its
id; the rows are all there or none of them. Each pod is decided over the books as those before it
left them, so if one of them cannot be kept, none is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.errors import InvalidInput, Unavailable
from numalign.model.hint import TopologyHint
from numalign.model.ids import AdmissionId, PodUid
from numalign.store.carried import carried_through
from numalign.topology.decision import AdmitCall, Decider, Judged
from numalign.topology.fanout import Fanout
from numalign.topology.hint_store import HintStore
from numalign.topology.picture import Picture
from numalign.topology.provider_handle import ProviderHandle, bound
from numalign.topology.records import Admitted, Records
from numalign.topology.registry import all_delivered
from numalign.topology.settling import in_group
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp

LARGEST = 32
"""How many pods are decided on before they are recorded: so long others wait for their turn."""


@dataclass(frozen=True, slots=True)
class _Member:
    admitted: Admitted
    response: ad.AdmitResponse
    affinities: Mapping[str, TopologyHint]


@dataclass(slots=True)
class Group:
    """One group, while the node's turn is held. It is over when it was kept or has raised."""

    admission_id: AdmissionId
    decider: Decider
    records: Records
    hints: HintStore
    picture: Picture
    handles: tuple[ProviderHandle, ...]
    _answers: list[ad.AdmitResponse] = field(default_factory=list)
    _members: list[_Member] = field(default_factory=list)
    _uids: set[PodUid] = field(default_factory=set)
    _fanout: Fanout | None = None

    def __contains__(self, pod_uid: PodUid) -> bool:
        """Whether the pod is admitted with this group."""
        return pod_uid in self._uids

    async def add(self, call: AdmitCall) -> Judged:
        """Decide on the next pod; if it is admitted, it is so once the group is kept.

        Raises InvalidInput for a pod that cannot be judged: the group goes on without it. Where
        it raises anything else, the whole group is lost.
        """
        self._fanout = fanout = self.decider.ask(call, self.admission_id, group=True)
        try:
            response, result, explaining = await self.decider.attempt(call, fanout)
            if self.decider.retries(call, result):
                await self._leave(call.pod.uid, fanout)
                self._fanout = fanout = self.decider.ask(call, self.admission_id, group=True)
                again = await self.decider.attempt_as_a_whole(call, fanout, result)
                if again is not None:
                    response, result, explaining = again
            if call.dry_run or not result.admitted:
                await self._leave(call.pod.uid, fanout)
        except InvalidInput:
            await carried_through(self._leave_or_lose(call.pod.uid, fanout))
            raise
        except BaseException:
            await carried_through(self._lose())
            raise
        self._answers.append(response)
        if result.admitted and not call.dry_run:
            record = self.decider.record_of(call, response)
            number = in_group(self.admission_id, len(self._members) + 1)
            admitted = Admitted(number, call.data, record)
            self._members.append(_Member(admitted, response, result.affinities))
            self._uids.add(call.pod.uid)
        return Judged(response, result, explaining)

    async def keep(self) -> None:
        """Record the pods that are admitted; all answers then have their revisions.

        Where it raises, the whole group is lost.
        """
        await carried_through(self._keep())

    async def lose(self) -> None:
        """Give the group up."""
        await carried_through(self._lose())

    async def _keep(self) -> None:
        revision = self.records.revision
        if self._fanout is None or not self._members:
            await self._lose()
        else:
            await self._record(self._fanout)
        for response in self._answers:
            revision = response.revision = response.revision or revision

    async def _record(self, fanout: Fanout) -> None:
        try:
            await fanout.prepare()
            recorded = await self.records.admit_all([m.admitted for m in self._members])
        except BaseException:
            await self._lose()
            raise
        for member, admitted in zip(self._members, recorded, strict=True):
            member.response.revision = admitted.message.revision
            self.hints.put(admitted.pod_uid, member.affinities)
            self.picture.admitted(admitted.pod_uid)
        request = hp.CommitRequest(admission_id=self.admission_id)
        for handle in self.handles:
            handle.deliver_later(bound(handle.stub.Commit, request, handle.timeout))

    async def _leave(self, pod_uid: PodUid, fanout: Fanout) -> None:
        """Take back what the last pod took, if it came so far. Raises Unavailable."""
        if not fanout.has_taken:
            return
        await self._tell(
            hp.AbortRequest(admission_id=self.admission_id, pod_uid=pod_uid, pod_only=True)
        )
        for handle in self.handles:
            if not handle.instance_id:
                raise Unavailable(f"hint provider {handle.name}: {handle.last_error}")

    async def _leave_or_lose(self, pod_uid: PodUid, fanout: Fanout) -> None:
        try:
            await self._leave(pod_uid, fanout)
        except Unavailable:
            await self._lose()
            raise

    async def _lose(self) -> None:
        request = hp.AbortRequest(admission_id=self.admission_id, leftovers=hp.LEFTOVERS_DROP)
        if self._fanout is not None:
            await self._tell(request)

    async def _tell(self, request: hp.AbortRequest) -> None:
        for handle in self.handles:
            handle.deliver(bound(handle.stub.Abort, request, handle.timeout))
        await all_delivered(self.handles)
