"""State files that are lost or damaged: what comes back, from where, and what is said about it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.integration.books import faults_of
from tests.unit.process.observed_world import pod, settings
from tests.unit.process.split_node import SplitNode, split_node

from numalign.config.settings import Service, Settings
from numalign.errors import DamagedState
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

PROVIDERS = (Service.CPU, Service.MEMORY, Service.DEVICE)


def config(tmp_path: Path, **numalign: Any) -> Settings:
    return settings(tmp_path, metrics={}, **numalign)


async def admit(node: SplitNode, *names: str, cpu: str = "2") -> list[ad.AdmitResponse]:
    answers = []
    for name in names:
        answers.append(await node.admission.Admit(ad.AdmitRequest(pod=pod(name, cpu=cpu))))
        assert answers[-1].verdict == pb.VERDICT_ADMITTED
    return answers


async def listed(node: SplitNode) -> dict[str, pb.AdmissionRecord]:
    listing = await node.admission.ListAdmissions(ad.ListAdmissionsRequest())
    return {record.name: record for record in listing.admissions}


async def settled(node: SplitNode) -> None:
    """Everything that runs by itself after the start has run."""
    probe = pod("probe", cpu="1", gpu="0")
    await node.admission.Admit(ad.AdmitRequest(pod=probe, dry_run=True))


async def agree(node: SplitNode) -> None:
    listing = await node.admission.ListAdmissions(ad.ListAdmissionsRequest())
    assert faults_of(listing, [await node.state(service) for service in PROVIDERS]) == []


def lose(tmp_path: Path, service: Service) -> None:
    for path in (tmp_path / "state").glob(f"{service.value}.db*"):
        path.unlink()


def damage(tmp_path: Path, service: Service) -> None:
    lose(tmp_path, service)
    (tmp_path / "state" / f"{service.value}.db").write_bytes(b"not a database at all" * 20)


@pytest.mark.parametrize("service", [pytest.param(s, id=s.value) for s in PROVIDERS])
@pytest.mark.parametrize(
    "ruin", [pytest.param(lose, id="lost"), pytest.param(damage, id="damaged")]
)
async def test_a_provider_gets_its_books_back_from_the_record(
    tmp_path: Path, service: Service, ruin: Any
) -> None:
    where = config(tmp_path)
    async with split_node(where) as node:
        await admit(node, "a", "b")
        before = await listed(node)
        books = await node.state(service)
    ruin(tmp_path, service)

    async with split_node(where) as node:
        await settled(node)
        after = await node.state(service)

        assert await listed(node) == before
        assert after.WhichOneof("state") == books.WhichOneof("state")
        assert getattr(after, service.value) == getattr(books, service.value)
        await agree(node)
        (again,) = await admit(node, "a")
        assert again.already_admitted


async def test_it_gets_them_back_without_anybody_asking(tmp_path: Path) -> None:
    where = config(tmp_path)
    async with split_node(where) as node:
        await admit(node, "a")
    lose(tmp_path, Service.CPU)

    async with split_node(where) as node, asyncio.timeout(60):
        async for change in node.watch(Service.CPU):
            if change.shared_cpus != "0-15":
                break
        assert (await node.state(Service.CPU)).cpu.assignments


async def test_a_damaged_file_is_kept_and_named(tmp_path: Path) -> None:
    where = config(tmp_path)
    async with split_node(where) as node:
        await admit(node, "a")
    damage(tmp_path, Service.TOPOLOGY)
    database = tmp_path / "state" / "topology.db"

    async with split_node(where):
        pass

    assert database.with_name("topology.db.damaged-1").read_bytes().startswith(b"not a database")


async def test_the_one_file_of_a_node_is_named_in_its_status(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "numalign.db").write_bytes(b"")

    node = await Node.open(config(tmp_path))
    reports = [report for part in node.parts for report in part.reports()]
    await node.close()

    assert reports == [
        (
            f"state file {state}/numalign.db: the file is empty; set aside as "
            f"{state}/numalign.db.damaged-1, and a new one is begun"
        )
    ]


async def test_the_kubelets_way_is_to_refuse(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "numalign.db").write_bytes(b"")

    with pytest.raises(DamagedState, match="the file is empty"):
        await Node.open(config(tmp_path, compatibility="kubelet"))

    assert (state / "numalign.db").read_bytes() == b""


class TestLostRecord:
    """The Topology Manager's file is gone; the providers' are not."""

    async def test_nothing_is_given_away_or_released(self, tmp_path: Path) -> None:
        where = config(tmp_path)
        async with split_node(where) as node:
            await admit(node, "a", "b")
            books = [await node.state(service) for service in PROVIDERS]
        lose(tmp_path, Service.TOPOLOGY)

        async with split_node(where) as node:
            await settled(node)
            (other,) = await admit(node, "c")

            for before, service in zip(books, PROVIDERS, strict=True):
                held = str(getattr(before, service.value).assignments[0])
                assert held in {
                    str(a) for a in getattr(await node.state(service), service.value).assignments
                }
            assert not other.already_admitted
            assert node.parts[Service.TOPOLOGY].reports() == tuple(
                f"pod uid-{name}: not in the record, which was lost; the providers cpu, device, "
                "memory keep what it holds until an agent says what it is"
                for name in "ab"
            )
        async with split_node(where) as node:
            await settled(node)
            assert len(node.parts[Service.TOPOLOGY].reports()) == 2

    async def test_a_pod_that_is_named_again_keeps_what_it_has(self, tmp_path: Path) -> None:
        where = config(tmp_path)
        async with split_node(where) as node:
            first, second = await admit(node, "a", "b")
            before = await listed(node)
        lose(tmp_path, Service.TOPOLOGY)

        async with split_node(where) as node:
            again_b, again_a = await admit(node, "b", "a")

            assert again_a.already_admitted
            assert [x.cpus for x in again_a.allocations] == [x.cpus for x in first.allocations]
            assert [x.devices for x in again_b.allocations] == [
                x.devices for x in second.allocations
            ]
            assert again_a.warnings == [
                (
                    "the record of admitted pods was lost; this pod keeps what the providers hold "
                    "for it and was not judged again"
                )
            ]
            assert (await listed(node)).keys() == before.keys()
            assert node.parts[Service.TOPOLOGY].reports() == ()
            await agree(node)

    async def test_another_pod_under_the_same_uid_is_not_recorded(self, tmp_path: Path) -> None:
        where = config(tmp_path)
        async with split_node(where) as node:
            await admit(node, "a")
        lose(tmp_path, Service.TOPOLOGY)

        async with split_node(where) as node:
            with pytest.raises(aio.AioRpcError) as refused:
                await admit(node, "a", cpu="3")
            await node.admission.Release(ad.ReleaseRequest(pod_uid="uid-a"))
            (answer,) = await admit(node, "a", cpu="3")

        assert refused.value.code() is StatusCode.FAILED_PRECONDITION
        assert 'pod "uid-a" runs with something else (holds CPUs' in (refused.value.details() or "")
        assert not answer.already_admitted

    async def test_a_complete_list_settles_what_is_gone(self, tmp_path: Path) -> None:
        where = config(tmp_path)
        async with split_node(where) as node:
            await admit(node, "a", "b", "c")
        lose(tmp_path, Service.TOPOLOGY)

        async with split_node(where) as node:
            reconcile = node.admission.Reconcile
            early = await reconcile(ad.ReconcileRequest(owner="x", active_pod_uids=["uid-b"]))
            full = await reconcile(
                ad.ReconcileRequest(owner="y", active_pod_uids=["uid-a"], sources_ready=True)
            )
            (again,) = await admit(node, "a")
            await node.admission.Release(ad.ReleaseRequest(pod_uid="uid-b"))
            reports = node.parts[Service.TOPOLOGY].reports()

        assert list(early.released_pod_uids) == []
        assert list(full.released_pod_uids) == ["uid-c"]
        assert list(full.unknown_pod_uids) == ["uid-a"]
        assert again.already_admitted
        assert reports == ()

    async def test_a_part_that_is_lost_as_well_is_named(self, tmp_path: Path) -> None:
        where = config(tmp_path)
        async with split_node(where) as node:
            await admit(node, "a")
        lose(tmp_path, Service.TOPOLOGY)
        lose(tmp_path, Service.MEMORY)

        async with split_node(where) as node:
            (again,) = await admit(node, "a")
            problems = (await listed(node))["a"].problems

        assert list(problems) == [
            f"memory: container c: not booked: asks for {1 << 30} bytes of memory, has none"
        ]
        assert again.warnings[1:] == problems


async def test_a_second_topology_manager_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    where = config(tmp_path)
    node = await Node.open(where)
    try:
        with pytest.raises(Exception, match="is held by another process"):
            await Node.open(where)
    finally:
        await node.close()


async def test_a_new_node_knows_that_its_record_is_whole(tmp_path: Path) -> None:
    node = await Node.open(config(tmp_path))
    await node.serving()
    admission = ad_grpc.AdmissionStub(node.channel(Service.ADMISSION))
    await admission.Admit(ad.AdmitRequest(pod=pod("a")))
    reports = [report for part in node.parts for report in part.reports()]
    await node.close()

    assert reports == []


async def test_what_is_reported_is_counted(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "numalign.db").write_bytes(b"")

    node = await Node.open(settings(tmp_path))
    text = node.metrics.text()
    await node.close()

    assert 'numalign_state_reports{service="topology"} 1.0' in text
    assert 'numalign_state_reports{service="cpu"} 0.0' in text


async def test_a_revision_from_before_the_loss_is_refused(tmp_path: Path) -> None:
    where = config(tmp_path)
    async with split_node(where) as node:
        (before,) = await admit(node, "a")
    lose(tmp_path, Service.TOPOLOGY)

    async with split_node(where) as node:
        await admit(node, "b", "c", "d")
        watch = node.admission.WatchAssignments(
            ad.WatchAssignmentsRequest(from_revision=before.revision), timeout=60
        )
        with pytest.raises(aio.AioRpcError) as watched:
            await anext(aiter(watch))
        with pytest.raises(aio.AioRpcError) as reconciled:
            await node.admission.Reconcile(
                ad.ReconcileRequest(as_of_revision=before.revision, sources_ready=True)
            )

        assert watched.value.code() == StatusCode.OUT_OF_RANGE
        assert reconciled.value.code() == StatusCode.INVALID_ARGUMENT
        assert "of another record of admitted pods, which was lost" in str(
            reconciled.value.details()
        )
        assert set(await listed(node)) == {"b", "c", "d"}
