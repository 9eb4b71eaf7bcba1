"""The Topology Manager and its service over a whole node: records, changes, and refusals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.integration.node_document import GPU, pod
from tests.integration.one_node import OneNode, opened

from numalign.config.settings import Service
from numalign.rpc.status import violations_of
from numalign.topology.explainer import Explainer
from numalign.topology.records import Admitted, Records
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1 import types_pb2 as pb


async def admit(node: OneNode, uid: str, cpu: int = 1) -> ad.AdmitResponse:
    return await node.admission.Admit(ad.AdmitRequest(pod=pod(uid, cpu=cpu), owner="kubelet"))


def topology(node: OneNode) -> tm_grpc.TopologyManagerAsyncStub:
    stub: tm_grpc.TopologyManagerAsyncStub = tm_grpc.TopologyManagerStub(
        node.node.channel(Service.TOPOLOGY)
    )
    return stub


async def test_asking_again_returns_the_record(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        first = await admit(node, "a")
        again = await admit(node, "a")
        assert not first.already_admitted
        assert again.already_admitted
        assert list(again.allocations) == list(first.allocations)
        assert again.revision == first.revision


async def test_a_release_waits_for_an_admit_that_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, go_on = asyncio.Event(), asyncio.Event()
    record = Records.admit

    async def slowly(records: Records, admitted: Admitted) -> Admitted:
        recording.set()
        await go_on.wait()
        return await record(records, admitted)

    monkeypatch.setattr(Records, "admit", slowly)
    async with opened(tmp_path) as node:
        given_up = asyncio.ensure_future(admit(node, "a"))
        await recording.wait()
        given_up.cancel()
        release = asyncio.ensure_future(node.admission.Release(ad.ReleaseRequest(pod_uid="a")))
        done, _ = await asyncio.wait((release,), timeout=0.1)
        assert not done
        go_on.set()
        await release
        assert list((await node.listing()).admissions) == []
        assert await node.faults() == []


async def test_nobody_waits_for_an_explanation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []
    explain = Explainer._explain

    async with opened(tmp_path) as node:

        def noted(*given: Any) -> pb.Explanation:
            taken.append(node.turnstile.taken)
            return explain(*given)

        monkeypatch.setattr(Explainer, "_explain", noted)
        for cpu, verdict in ((1, pb.VERDICT_ADMITTED), (99, pb.VERDICT_REJECTED)):
            for dry_run in (True, False):
                request = ad.AdmitRequest(
                    pod=pod(f"p{cpu}", cpu=cpu), dry_run=dry_run, explain=pb.EXPLAIN_LEVEL_FULL
                )
                answer = await node.admission.Admit(request)
                assert answer.verdict == verdict
                assert answer.explanation.summary
                assert len(answer.explanation.merges) == 1
    assert taken[:4] == [False] * 4


async def test_a_changed_spec_names_the_field(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        await admit(node, "a")
        with pytest.raises(aio.AioRpcError) as changed:
            await node.admission.Admit(ad.AdmitRequest(pod=pod("a", gpus=2), owner="kubelet"))
        assert changed.value.code() == StatusCode.FAILED_PRECONDITION
        assert f"spec.containers[0].resources.requests[{GPU}]" in str(changed.value.details())
        with pytest.raises(aio.AioRpcError) as other:
            await node.admission.Admit(ad.AdmitRequest(pod=pod("a"), owner="run"))
        assert other.value.code() == StatusCode.FAILED_PRECONDITION
        assert "owner" in str(other.value.details())


async def test_a_refusal_keeps_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        answer = await admit(node, "big", cpu=12)
        assert answer.verdict == pb.VERDICT_REJECTED
        assert answer.reason == "TopologyAffinityError"
        assert answer.handler == "topology-manager"
        assert list(answer.allocations) == []
        assert await node.faults() == []
        assert list((await node.listing()).admissions) == []


async def test_a_dry_run_keeps_nothing_and_takes_no_revision(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        before = await node.listing()
        answer = await node.admission.Admit(ad.AdmitRequest(pod=pod("a"), dry_run=True))
        assert answer.verdict == pb.VERDICT_ADMITTED
        assert answer.dry_run
        assert await node.listing() == before
        assert await node.faults() == []


@pytest.mark.parametrize(
    ("picture", "seen", "released"),
    [
        pytest.param(ad.ReconcileRequest(sources_ready=True), True, ["a", "b"], id="all"),
        pytest.param(ad.ReconcileRequest(), True, [], id="sources-not-ready"),
        pytest.param(ad.ReconcileRequest(sources_ready=True), False, [], id="seen-nothing-yet"),
        pytest.param(
            ad.ReconcileRequest(sources_ready=True, active_pod_uids=["a"]),
            True,
            ["b"],
            id="one-is-active",
        ),
        pytest.param(
            ad.ReconcileRequest(sources_ready=True, owner="run"), True, [], id="other-owner"
        ),
    ],
)
async def test_reconciliation(
    tmp_path: Path, picture: ad.ReconcileRequest, seen: bool, released: list[str]
) -> None:
    async with opened(tmp_path) as node:
        for uid in ("a", "b"):
            await admit(node, uid)
        request = ad.ReconcileRequest(owner="kubelet")
        request.MergeFrom(picture)
        if seen:
            request.as_of_revision = (await node.listing()).revision
        answer = await node.admission.Reconcile(request)
        assert sorted(answer.released_pod_uids) == released
        left = [record.pod_uid for record in (await node.listing()).admissions]
        assert sorted([*left, *released]) == ["a", "b"]
        assert await node.faults() == []


@pytest.mark.parametrize("ready", [True, False])
async def test_a_view_from_the_future_releases_nothing(tmp_path: Path, ready: bool) -> None:
    async with opened(tmp_path) as node:
        await admit(node, "a")
        now = (await node.listing()).revision
        with pytest.raises(aio.AioRpcError) as refused:
            await node.admission.Reconcile(
                ad.ReconcileRequest(owner="kubelet", as_of_revision=now + 1, sources_ready=ready)
            )
        (violation,) = violations_of(refused.value)
        assert refused.value.code() == StatusCode.INVALID_ARGUMENT
        assert violation.field == "as_of_revision"
        assert f"{now + 1} is in the future" in violation.description
        assert [record.pod_uid for record in (await node.listing()).admissions] == ["a"]


async def test_pods_that_only_the_owner_knows_are_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        answer = await node.admission.Reconcile(
            ad.ReconcileRequest(owner="kubelet", active_pod_uids=["x"], sources_ready=True)
        )
        assert list(answer.unknown_pod_uids) == ["x"]


async def test_the_affinity_goes_with_the_container(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        await admit(node, "a")
        stub = topology(node)
        question = tm.GetAffinityRequest(pod_uid="a", container_name="c")
        chosen = (await stub.GetAffinity(question)).affinity
        assert chosen.preferred
        for id_ in ("one", "two"):
            await node.admission.AddContainer(
                ad.AddContainerRequest(pod_uid="a", container_name="c", container_id=id_)
            )
        await node.admission.RemoveContainer(ad.RemoveContainerRequest(container_id="one"))
        assert (await stub.GetAffinity(question)).affinity == chosen
        await node.admission.RemoveContainer(ad.RemoveContainerRequest(container_id="two"))
        assert not (await stub.GetAffinity(question)).affinity.HasField("mask")


async def test_preparation_comes_from_every_provider(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        held = (await admit(node, "a")).allocations[0]
        answer = await node.admission.PrepareContainer(
            ad.PrepareContainerRequest(pod_uid="a", container_name="c")
        )
        assert answer.cpus == held.cpus
        assert answer.exclusive_cpus
        assert answer.mems == ",".join(map(str, held.memory[0].numa_nodes))
        assert [device.ids for device in answer.allocation.devices] == [
            device.ids for device in held.devices
        ]


@pytest.mark.parametrize(
    ("pod_uid", "container", "code"),
    [
        pytest.param("nobody", "c", StatusCode.NOT_FOUND, id="pod"),
        pytest.param("a", "nobody", StatusCode.INVALID_ARGUMENT, id="container"),
        pytest.param("", "c", StatusCode.INVALID_ARGUMENT, id="no-pod"),
        pytest.param("a", "", StatusCode.INVALID_ARGUMENT, id="no-container"),
    ],
)
async def test_calls_about_nobody(
    tmp_path: Path, pod_uid: str, container: str, code: StatusCode
) -> None:
    async with opened(tmp_path) as node:
        await admit(node, "a")
        for call in (
            node.admission.PrepareContainer(
                ad.PrepareContainerRequest(pod_uid=pod_uid, container_name=container)
            ),
            node.admission.AddContainer(
                ad.AddContainerRequest(pod_uid=pod_uid, container_name=container, container_id="id")
            ),
        ):
            with pytest.raises(aio.AioRpcError) as refused:
                await call
            assert refused.value.code() == code


async def test_policy_and_providers_are_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as node:
        policy = await topology(node).GetPolicy(tm.GetPolicyRequest())
        assert (policy.policy, policy.scope) == ("single-numa-node", "container")
        assert list(policy.numa_nodes) == [0, 1]
        listed = await topology(node).ListHintProviders(tm.ListHintProvidersRequest())
        assert [provider.name for provider in listed.providers] == ["device", "cpu", "memory"]
        assert all(provider.built_in for provider in listed.providers)
