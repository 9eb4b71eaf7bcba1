"""Everything that callers can do at once, in any order and given up at any point.

Hypothesis makes up schedules for a node in one process: who calls what, how many turns of the
event loop later, and after how many more it is given up. When all is quiet the books must add
up, and nothing that was answered may have been forgotten.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path

from grpc import StatusCode, aio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.books import held_by
from tests.integration.node_document import pod
from tests.integration.one_node import PROVIDERS, OneNode, opened

from numalign.model.revision import same_record
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

OWNERS = ("kubelet", "run")
PODS = 4
MAY_HAPPEN = {StatusCode.NOT_FOUND, StatusCode.UNAVAILABLE, StatusCode.CANCELLED}


@dataclass(frozen=True)
class Act:
    """One call. `after` and `give_up` count turns of the event loop; None: never given up."""

    kind: str
    owner: str
    number: int
    after: int
    give_up: int | None
    ready: bool
    behind: int

    @property
    def uid(self) -> str:
        """The pod that it is about."""
        return f"{self.owner}-{self.number}"


ACTS = st.builds(
    Act,
    kind=st.sampled_from(
        ("admit", "admit", "admit", "dry-run", "release", "reconcile", "start", "restart")
    ),
    owner=st.sampled_from(OWNERS),
    number=st.integers(0, PODS - 1),
    after=st.integers(0, 40),
    give_up=st.none() | st.integers(0, 40),
    ready=st.booleans(),
    behind=st.integers(0, 3),
)


@dataclass
class History:
    """What callers were told, and what a watcher saw."""

    admitted: list[ad.AdmitResponse] = field(default_factory=list)
    uids: list[str] = field(default_factory=list)
    starting: list[str] = field(default_factory=list)
    reconciled: list[tuple[ad.ReconcileRequest, ad.ReconcileResponse]] = field(default_factory=list)
    events: list[ad.WatchAssignmentsResponse] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """The revision up to which the watcher has seen everything."""
        return self.events[-1].revision if self.events else 0


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def request_of(act: Act) -> ad.AdmitRequest:
    return ad.AdmitRequest(
        pod=pod(act.uid, cpu=1 + act.number, gpus=act.number % 3, init_cpu=act.number % 2),
        owner=act.owner,
        dry_run=act.kind == "dry-run",
    )


async def call(node: OneNode, act: Act, history: History) -> None:
    stub = node.admission
    match act.kind:
        case "admit" | "dry-run":
            answer = await stub.Admit(request_of(act), timeout=60)
            if answer.verdict == pb.VERDICT_ADMITTED and not answer.dry_run:
                history.admitted.append(answer)
                history.uids.append(act.uid)
        case "release":
            await stub.Release(ad.ReleaseRequest(pod_uid=act.uid), timeout=60)
        case "start":
            history.starting.append(act.uid)
            await start(node, act.uid)
            history.starting.remove(act.uid)
        case "restart":
            await node.restart_provider(PROVIDERS[act.number % len(PROVIDERS)])
        case "reconcile":
            revision = (await node.listing()).revision
            behind = revision - act.behind
            request = ad.ReconcileRequest(
                owner=act.owner,
                active_pod_uids=[act.uid],
                as_of_revision=behind if same_record(behind, revision) else 0,
                sources_ready=act.ready,
            )
            history.reconciled.append((request, await stub.Reconcile(request, timeout=60)))


async def start(node: OneNode, uid: str) -> None:
    request = ad.AddContainerRequest(pod_uid=uid, container_name="c", container_id=f"id-{uid}")
    await node.admission.AddContainer(request, timeout=60)


async def play(node: OneNode, act: Act, history: History) -> None:
    await turns(act.after)
    work: asyncio.Task[None] = asyncio.ensure_future(call(node, act, history))
    if act.give_up is not None and act.kind != "restart":
        await turns(act.give_up)
        work.cancel()
    try:
        await work
    except aio.AioRpcError as error:
        if error.code() not in MAY_HAPPEN:
            raise
    except asyncio.CancelledError:
        assert act.give_up is not None


async def watch(node: OneNode, history: History) -> None:
    async for event in node.admission.WatchAssignments(ad.WatchAssignmentsRequest()):
        history.events.append(event)


async def quiet(node: OneNode, history: History) -> None:
    """Wait until every outcome has arrived and the watcher has seen everything."""
    for _ in range(200):
        try:
            await node.admission.Admit(
                ad.AdmitRequest(pod=pod("probe", gpus=0), dry_run=True), timeout=60
            )
            break
        except aio.AioRpcError as error:
            if error.code() != StatusCode.UNAVAILABLE:
                raise
    for uid in history.starting:
        # Whoever gets no answer to this call makes it again.
        try:
            await start(node, uid)
        except aio.AioRpcError as error:
            if error.code() != StatusCode.NOT_FOUND:
                raise
    revision = (await node.listing()).revision
    async with asyncio.timeout(60):
        while history.seen < revision:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)


def check_answers(history: History, listing: ad.ListAdmissionsResponse) -> None:
    """What was admitted is listed as it was answered, unless the watcher saw it go."""
    recorded = {record.pod_uid: record for record in listing.admissions}
    released = {event.released.pod_uid: event.revision for event in history.events}
    for uid, answer in zip(history.uids, history.admitted, strict=True):
        if uid not in recorded:
            assert released.get(uid, 0) > answer.revision, f"{uid} is gone"
        elif released.get(uid, 0) < answer.revision:
            told, held = held_by(answer.allocations), held_by(recorded[uid].allocations)
            # Its init container may have ended since.
            assert told["c"] == held["c"]


def check_events(history: History) -> None:
    """Changes come in order, each with a revision of its own."""
    kinds = [event.WhichOneof("event") for event in history.events]
    live = history.events[kinds.index("synced") + 1 :]
    revisions = [event.revision for event in live if not event.HasField("unhealthy_devices")]
    assert revisions == sorted(set(revisions))


def check_reconciliations(history: History) -> None:
    """Only pods of the owner, that it does not name and may have known, when all is known."""
    for request, response in history.reconciled:
        if not request.sources_ready:
            assert response.released_pod_uids == []
        for uid in response.released_pod_uids:
            assert uid not in request.active_pod_uids
            gone = [
                event.revision
                for event in history.events
                if event.released.pod_uid == uid and event.revision <= response.revision
            ]
            last = max(
                (
                    event.changed
                    for event in history.events
                    if event.changed.pod_uid == uid and event.revision < gone[-1]
                ),
                key=lambda record: record.revision,
            )
            assert last.owner == request.owner
            assert last.revision <= request.as_of_revision


async def race(acts: list[Act], directory: Path) -> None:
    async with opened(directory) as node:
        history = History()
        watcher: asyncio.Task[None] = asyncio.ensure_future(watch(node, history))
        work: list[Awaitable[None]] = [play(node, act, history) for act in acts]
        await asyncio.gather(*work)
        await quiet(node, history)
        assert await node.faults() == []
        listing = await node.listing()
        check_answers(history, listing)
        check_events(history)
        check_reconciliations(history)
        if all(act.kind != "restart" for act in acts):
            assert await node.shared_cpus_agree()
        for record in listing.admissions:
            await node.admission.Release(ad.ReleaseRequest(pod_uid=record.pod_uid))
        assert await node.faults() == []
        assert (await node.listing()).admissions == []
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)


@given(acts=st.lists(ACTS, min_size=1, max_size=24))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
def test_any_schedule_leaves_the_books_in_order(acts: list[Act]) -> None:
    with tempfile.TemporaryDirectory(prefix="na-") as directory:
        asyncio.run(race(acts, Path(directory)))
