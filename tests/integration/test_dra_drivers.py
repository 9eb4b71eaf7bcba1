"""Pods with claims and real driver processes, from admission to release."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import Iterator

import pytest
from grpc import StatusCode, aio
from tests.integration.dra_world import (
    DRIVER,
    ROOT,
    Place,
    claim,
    claiming_pod,
    fetched,
    place,
    reached,
    running,
)
from tests.integration.plugin_world import end, until

from numalign.config.settings import Service
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub

pytestmark = pytest.mark.processes


@pytest.fixture(name="world")
def world_fixture() -> Iterator[Place]:
    with place() as made:
        for name in ("card-0", "card-1"):
            made.device(name)
        yield made


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_pod_gets_what_its_driver_says(world: Place, version: str) -> None:
    pod = claiming_pod("a", "c1")
    made = world.claim("c1", "u1", "a", device="card-0")
    world.driver("--version", version)
    async with running(world) as agent:
        await agent.admit(pod)
        with pytest.raises(aio.AioRpcError) as early:
            await agent.container("a")
        answer = await agent.prepared(pod, made)
        container = await agent.container("a")
        kept = await agent.kept()
        specification = json.loads((world.root / "cdi" / f"{DRIVER}-u1.json").read_text())
        await agent.release("a")
        after = await agent.kept()

    assert early.value.code() is StatusCode.FAILED_PRECONDITION
    assert early.value.details() == (
        'resource claims of pod "shop/a" are not prepared: call PreparePod first'
    )
    assert list(container.edits.cdi_devices) == [f"{DRIVER}/claim=u1-card-0"]
    assert container.allocation.claims == answer.allocations[0].claims
    assert specification["devices"][0]["containerEdits"] == {"env": ["CARD=card-0"]}
    assert [driver.service for driver in kept.drivers] == [f"{version}.DRAPlugin"]
    assert [(c.name, list(c.pod_uids)) for c in kept.claims] == [("c1", ["a"])]
    assert (list(after.claims), world.left()) == ([], [])
    assert world.done() == Counter({"prepared u1": 1, "unprepared u1": 1})


async def test_the_sample_drivers_page_does_what_it_says(world: Place) -> None:
    page = (ROOT / "clients" / "examples" / "dra-driver" / "README.md").read_text(encoding="utf-8")
    (made,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (world.path("claims") / "default.one.json").write_text(made)
    code = code.replace("/tmp/dra", str(world.root)).replace(
        "/run/numalign", str(world.root / "run")
    )

    async def output() -> str:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=PIPE)
        return (await process.communicate())[0].decode()

    world.config()
    world.service(None)
    async with reached(world) as agent:
        before = await output()
        world.driver()
        await agent.registered()
        after = await output()

    assert f"DRA driver {DRIVER} is not registered" in before
    assert after == f"['{DRIVER}/claim=claim-1-card-0']\n"
    assert world.left() == []


async def test_a_driver_that_comes_late_is_waited_for(world: Place) -> None:
    pod = claiming_pod("a", "c1")
    made = world.claim("c1", "u1", "a", device="card-0")
    async with running(world) as agent:
        await agent.admit(pod)
        first = await agent.prepare(pod, made)
        world.driver()
        await agent.prepared(pod, made)

    assert first.verdict == pb.VERDICT_DEFERRED
    assert first.reason == "FailedPrepareDynamicResources"
    assert first.message == (
        "Failed to prepare dynamic resources: prepare dynamic resources: "
        f"DRA driver {DRIVER} is not registered"
    )
    assert first.retry_after.ToMilliseconds() == 100


async def test_a_shared_claim_stays_until_its_last_user_has_ended(world: Place) -> None:
    """Releasing one user again does not unprepare under the other (DRA-T4)."""
    pods = {uid: claiming_pod(uid, "c1") for uid in ("a", "b")}
    made = world.claim("c1", "u1", "a", "b", device="card-0")
    world.driver()
    async with running(world) as agent:
        for pod in pods.values():
            await agent.admit(pod)
            await agent.prepared(pod, made)
        await agent.release("a")
        with pytest.raises(aio.AioRpcError) as again:
            await agent.release("a")
        between = world.left()
        await agent.release("b")

    assert again.value.code() is StatusCode.NOT_FOUND
    assert (between, world.left()) == (["u1"], [])
    assert world.done() == Counter({"prepared u1": 1, "unprepared u1": 1})


async def test_a_driver_that_dies_before_the_end_holds_the_pod_up(world: Place) -> None:
    pod = claiming_pod("a", "c1")
    made = world.claim("c1", "u1", "a", device="card-0")
    driver = world.driver()
    async with running(world) as agent:
        await agent.admit(pod)
        await agent.prepared(pod, made)
        end(driver, signal.SIGKILL)
        with pytest.raises(aio.AioRpcError) as failed:
            await agent.release("a")
        still = await agent.stub.ListAdmissions(ad.ListAdmissionsRequest())
        world.driver()

        async def released() -> bool:
            try:
                await agent.release("a")
            except aio.AioRpcError:
                return False
            return True

        await until(released, "the driver is back")

    assert failed.value.code() is StatusCode.UNAVAILABLE
    details = failed.value.details() or ""
    assert details.startswith("unprepare dynamic resources: NodeUnprepareResources: rpc error: ")
    assert [record.pod_uid for record in still.admissions] == ["a"]
    assert world.left() == []


async def test_pods_that_ended_unheard_are_reconciled(world: Place) -> None:
    pods = {uid: claiming_pod(uid, f"c-{uid}") for uid in ("a", "b")}
    claims = {
        "a": world.claim("c-a", "ua", "a", device="card-0"),
        "b": world.claim("c-b", "ub", "b", device="card-1"),
    }
    driver = world.driver()
    async with running(world) as agent:
        for uid, pod in pods.items():
            await agent.admit(pod)
            await agent.prepared(pod, claims[uid])
        end(driver, signal.SIGKILL)
        (world.root / "pr" / f"{DRIVER}-reg.sock").unlink()

        async def gone() -> bool:
            return not (await agent.kept()).drivers

        await until(gone, "the driver is let go")
        outcome = await agent.reconcile("b")
        world.driver()
        await agent.registered()
        later = await agent.reconcile("b")

    assert list(outcome.released_pod_uids) == ["a"]
    assert list(outcome.problems) == [
        f"pod a: unprepare dynamic resources: DRA driver {DRIVER} is not registered"
    ]
    assert list(later.problems) == []
    assert world.left() == ["ub"]


async def test_bad_claims_are_refused_in_the_kubelets_words(world: Place) -> None:
    pod = claiming_pod("a", "c1")
    made = world.claim("c1", "u1", "b", device="card-0")
    unallocated = fetched(claim("c1", "u1", "a", devices={}))
    unallocated.claim.ClearField("allocation")
    unread = type(made)(name="c1", error='resourceclaims.resource.k8s.io "c1" not found')
    world.driver()
    async with running(world) as agent:
        await agent.admit(pod)
        answers = [await agent.prepare(pod, each) for each in (made, unallocated, unread)]
        with pytest.raises(aio.AioRpcError) as left_out:
            await agent.prepare(pod)
        with pytest.raises(aio.AioRpcError) as unknown:
            await agent.prepare(claiming_pod("z", "c1"), made)

    prefix = "Failed to prepare dynamic resources: prepare dynamic resources: "
    assert [answer.message.removeprefix(prefix) for answer in answers] == [
        "pod a (a) is not allowed to use ResourceClaim c1 (u1)",
        "ResourceClaim c1: not allocated",
        'fetch ResourceClaim c1: resourceclaims.resource.k8s.io "c1" not found',
    ]
    assert left_out.value.code() is StatusCode.INVALID_ARGUMENT
    assert left_out.value.details() == 'claims: says nothing of ResourceClaim "c1" of the pod'
    assert unknown.value.code() is StatusCode.NOT_FOUND


async def test_the_health_of_a_claimed_device_is_told(world: Place) -> None:
    pod = claiming_pod("a", "c1", requests={"c1": "r0"})
    made = world.claim("c1", "u1", "a", device="card-0")
    world.driver("--health")
    async with running(world) as agent:
        await agent.admit(pod)
        await agent.prepared(pod, made)

        async def told() -> list[tuple[str, str, str]]:
            listed = await agent.stub.ListAdmissions(ad.ListAdmissionsRequest())
            return [(d.resource, d.id, d.health) for d in listed.unhealthy_devices]

        async def ill() -> bool:
            return await told() == [("claim:k0/r0", f"{DRIVER}/claim=u1-card-0", "Unhealthy")]

        async def well() -> bool:
            return await told() == []

        await until(well, "its health is known")
        world.device("card-0", "# unhealthy")
        await until(ill, "it is told that the device is ill")
        world.device("card-0")
        await until(well, "it is told that the device is well")


async def test_without_the_service_claims_are_not_looked_at(world: Place) -> None:
    pod = claiming_pod("a", "c1")
    node = await Node.open(world.settings(dra={"enabled": False}))
    try:
        await node.serving()
        stub = AdmissionStub(node.channel(Service.ADMISSION))
        await stub.Admit(ad.AdmitRequest(pod=pod))
        with pytest.raises(aio.AioRpcError) as refused:
            await stub.PreparePod(ad.PreparePodRequest(pod=pod))
        prepared = await stub.PrepareContainer(
            ad.PrepareContainerRequest(pod_uid="a", container_name="c")
        )
        await stub.Release(ad.ReleaseRequest(pod_uid="a"))
    finally:
        await node.close()

    assert refused.value.code() is StatusCode.FAILED_PRECONDITION
    assert refused.value.details() == (
        "resource claims are not served here (numalign.dra.enabled is false)"
    )
    assert not prepared.edits.cdi_devices
