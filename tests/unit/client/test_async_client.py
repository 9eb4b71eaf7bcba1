"""The asyncio client over a real socket: the same calls, the same errors."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from tests.unit.client.conftest import ScriptedAdmission, aborted

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_client import AsyncAdmissionClient, NotAdmitted, UnsupportedRequest

POD = core_pb2.Pod(metadata=core_pb2.ObjectMeta(uid="u1"))


async def test_every_call(socket: Path, admission: ScriptedAdmission) -> None:
    async with AsyncAdmissionClient(socket) as client:
        answer = await client.admit(POD, dry_run=True, explain="summary", owner="o", timeout=60)
        assert answer.dry_run
        assert await client.release("u1", timeout=60) == 8
        reconciled = await client.reconcile(
            ["u1"], as_of_revision=5, sources_ready=False, timeout=60
        )
        assert list(reconciled.released_pod_uids) == ["gone"]
        assert (await client.prepare_container("u1", "c", timeout=60)).cpus == "2-3"
        await client.add_container("u1", "c", "i", timeout=60)
        await client.remove_container("i", timeout=60)
        assert (await client.list_admissions(timeout=60)).admissions[0].pod_uid == "u1"
        assert (await client.get_node_resources(timeout=60)).revision == 9

    assert admission.requests == [
        ad.AdmitRequest(
            pod=POD,
            operation=pb.OPERATION_ADD,
            owner="o",
            dry_run=True,
            explain=pb.EXPLAIN_LEVEL_SUMMARY,
        ),
        ad.ReleaseRequest(pod_uid="u1"),
        ad.ReconcileRequest(active_pod_uids=["u1"], as_of_revision=5),
        ad.PrepareContainerRequest(pod_uid="u1", container_name="c"),
        ad.AddContainerRequest(pod_uid="u1", container_name="c", container_id="i"),
        ad.RemoveContainerRequest(container_id="i"),
        ad.ListAdmissionsRequest(),
        ad.GetNodeResourcesRequest(),
    ]


async def test_a_status_is_an_exception(socket: Path, admission: ScriptedAdmission) -> None:
    admission.fails = lambda context: context.abort(grpc.StatusCode.NOT_FOUND, "not here")
    async with AsyncAdmissionClient(socket) as client:
        with pytest.raises(NotAdmitted, match="not here"):
            await client.release("u1", timeout=60)


async def test_a_watch_resumes(socket: Path, admission: ScriptedAdmission) -> None:
    def first(context: grpc.ServicerContext) -> Iterator[ad.WatchAssignmentsResponse]:
        yield ad.WatchAssignmentsResponse(synced=ad.Synced(), revision=4)

    def second(context: grpc.ServicerContext) -> Iterator[ad.WatchAssignmentsResponse]:
        yield ad.WatchAssignmentsResponse(shared_cpus=ad.SharedCpus(cpus="0-1"), revision=5)

    def third(context: grpc.ServicerContext) -> Iterator[ad.WatchAssignmentsResponse]:
        yield from aborted(context, grpc.StatusCode.UNIMPLEMENTED, "gone for good")

    admission.streams = [first, second, third]
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    seen = []
    async with AsyncAdmissionClient(socket) as client:

        async def follow() -> None:
            async for event in client.watch_assignments(sleep=sleep):
                seen.append(event.revision)  # noqa: PERF401 - what came before the error counts

        with pytest.raises(UnsupportedRequest, match="gone for good"):
            await follow()

    assert seen == [4, 5]
    assert [request.from_revision for request in admission.requests] == [0, 4, 5]
    assert waits == [0.1, 0.1]
