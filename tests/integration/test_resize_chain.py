"""Resizes through the whole chain of a node in one process: who refuses them, and what counts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from grpc import StatusCode, aio
from tests.integration.node_document import document
from tests.integration.one_node import OneNode, opened
from tests.integration.resized_pods import (
    CRITICAL,
    addition,
    burstable,
    cpu_of,
    guaranteed,
    node_object,
    resize,
)

from numalign.config.loader import load_settings
from numalign.kube.core.v1 import core_pb2
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

PINNED = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'


@asynccontextmanager
async def node(
    directory: Path, known: core_pb2.Node | None = None, **extension: Any
) -> AsyncIterator[OneNode]:
    """A node over a host of which nothing can be read, so that it is under no pressure."""
    root = directory / "root"
    root.mkdir(exist_ok=True)
    async with opened(directory, hostRoot=str(root), **extension) as one:
        if known is not None:
            await one.admission.SetNode(ad.SetNodeRequest(node=known))
        yield one


async def admitted(one: OneNode, *pods: core_pb2.Pod) -> None:
    for pod in pods:
        answer = await one.admission.Admit(addition(pod))
        assert answer.verdict == pb.VERDICT_ADMITTED, answer


async def allocated(one: OneNode) -> dict[str, str]:
    """The CPU that each pod is allocated."""
    return {r.pod_uid: cpu_of(r.resources) for r in (await one.listing()).admissions}


@pytest.mark.parametrize("mode", ["safe", "kubelet"])
async def test_others_count_with_what_they_are_allocated(tmp_path: Path, mode: str) -> None:
    """ALLOC-1, ADM-6: neither as they were admitted, nor as they would like to be."""
    async with node(tmp_path, node_object(cpu="8"), compatibility=mode) as one:
        await admitted(one, burstable("a", "1"))
        granted = await one.admission.Admit(resize(burstable("a", "3")))
        wanted = await one.admission.Admit(addition(burstable("a", "6")))
        refused = await one.admission.Admit(addition(burstable("b", "6")))
        if mode == "kubelet":
            # TOPO-8: what a refused pod was given stays until it is released.
            await one.admission.Release(ad.ReleaseRequest(pod_uid="b"))
        fits = await one.admission.Admit(addition(burstable("b", "5")))

    assert (granted.verdict, cpu_of(granted.resources)) == (pb.VERDICT_ADMITTED, "3")
    assert (wanted.verdict, wanted.resize_pending) == (pb.VERDICT_ADMITTED, True)
    assert cpu_of(wanted.resources) == "3"
    assert refused.message.endswith("cpu, requested: 6000, used: 3000, capacity: 8000")
    assert fits.verdict == pb.VERDICT_ADMITTED


@pytest.mark.parametrize("mode", ["safe", "kubelet"])
async def test_a_resize_that_does_not_fit_yet(tmp_path: Path, mode: str) -> None:
    """RSZ-6: deferred, with the refusing handler's own reason apart; then there is room."""
    async with node(tmp_path, node_object(cpu="8"), compatibility=mode) as one:
        await admitted(one, burstable("a", "2"), burstable("b", "5"))
        deferred = await one.admission.Admit(resize(burstable("a", "4")))
        meanwhile = await allocated(one)
        await one.admission.Release(ad.ReleaseRequest(pod_uid="b"))
        granted = await one.admission.Admit(resize(burstable("a", "4")))
        after = await allocated(one)
        faults = await one.faults()

    assert (deferred.verdict, deferred.reason) == (pb.VERDICT_DEFERRED, "Deferred")
    assert (deferred.handler, deferred.handler_reason) == ("predicates", "OutOfcpu")
    assert deferred.message == (
        "Node didn't have enough resource: cpu, requested: 4000, used: 5000, capacity: 8000"
    )
    assert deferred.retry_after.seconds == 180
    assert cpu_of(deferred.resources) == "2"
    assert meanwhile == {"a": "2", "b": "5"}
    assert granted.verdict == pb.VERDICT_ADMITTED
    assert after == {"a": "4"}
    assert faults == []


@pytest.mark.parametrize(
    ("known", "extension", "wanted", "message"),
    [
        pytest.param(node_object(), {}, guaranteed("a", "2"), PINNED, id="cpus"),
        pytest.param(None, {}, guaranteed("a", "2"), PINNED, id="without-a-node-object"),
        pytest.param(
            node_object(),
            {},
            guaranteed("a", "1", "2Gi"),
            'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
            id="memory",
        ),
        pytest.param(
            node_object(),
            {"admission": {"chain": "v1.31"}},
            guaranteed("a", "2"),
            "InPlacePodVerticalScaling is disabled",
            id="v1.31",
        ),
    ],
)
async def test_a_resize_that_never_fits(
    tmp_path: Path,
    known: core_pb2.Node | None,
    extension: dict[str, Any],
    wanted: core_pb2.Pod,
    message: str,
) -> None:
    """RSZ-2, RSZ-5."""
    async with node(tmp_path, known, **extension) as one:
        await admitted(one, guaranteed("a", "1"))
        before = (await one.listing()).admissions
        answer = await one.admission.Admit(resize(wanted))

        assert (answer.verdict, answer.reason) == (pb.VERDICT_REJECTED, "Infeasible")
        assert (answer.handler, answer.handler_reason) == ("resize-feasibility", "Infeasible")
        assert answer.message == message
        assert cpu_of(answer.resources) == "1"
        assert not answer.HasField("retry_after")
        assert (await one.listing()).admissions == before


async def test_without_a_node_object_there_is_no_limit_to_fit_in(tmp_path: Path) -> None:
    async with node(tmp_path) as one:
        await admitted(one, burstable("a", "1"))
        answer = await one.admission.Admit(resize(burstable("a", "12")))

    assert answer.verdict == pb.VERDICT_ADMITTED


async def test_what_is_no_resize_comes_before_any_handler(tmp_path: Path) -> None:
    async with node(tmp_path, node_object(pods="1")) as one:
        with pytest.raises(aio.AioRpcError) as unknown:
            await one.admission.Admit(resize(burstable("a", "20")))
        await admitted(one, burstable("a"))
        other = burstable("a", "20")
        other.spec.containers[0].name = "other"
        with pytest.raises(aio.AioRpcError) as changed:
            await one.admission.Admit(resize(other))

    assert unknown.value.code() == StatusCode.NOT_FOUND
    assert changed.value.code() == StatusCode.FAILED_PRECONDITION
    assert (changed.value.details() or "").startswith("spec.containers[0].name: ")


async def test_a_dry_run_keeps_nothing(tmp_path: Path) -> None:
    async with node(tmp_path, node_object()) as one:
        await admitted(one, burstable("a"))
        before = await allocated(one)
        granted = await one.admission.Admit(resize(burstable("a", "4"), dry_run=True))
        deferred = await one.admission.Admit(resize(burstable("a", "9"), dry_run=True))
        equal = await one.admission.Admit(resize(burstable("a", "1")))

        assert (granted.verdict, granted.dry_run) == (pb.VERDICT_ADMITTED, True)
        assert cpu_of(granted.resources) == "4"
        assert (deferred.verdict, deferred.dry_run) == (pb.VERDICT_DEFERRED, True)
        assert cpu_of(deferred.resources) == "1"
        assert (equal.already_admitted, equal.dry_run) == (True, False)
        assert await allocated(one) == before


async def test_what_containers_really_use_counts_until_they_have_shrunk(tmp_path: Path) -> None:
    """PRED-7, trap 24: the caller tells the status of pods that are admitted."""
    async with node(tmp_path, node_object(cpu="8")) as one:
        await admitted(one, burstable("a", "6"))
        await one.admission.Admit(resize(burstable("a", "1")))
        shrinking = [burstable("a", "9", actuated="6")]
        early = await one.admission.Admit(addition(burstable("b", "4"), other_pods=shrinking))
        shrunk = [burstable("a", "9", actuated="1")]
        later = await one.admission.Admit(addition(burstable("b", "4"), other_pods=shrunk))

    assert early.message.endswith("cpu, requested: 4000, used: 6000, capacity: 8000")
    assert later.verdict == pb.VERDICT_ADMITTED


async def test_a_critical_pod_makes_room_for_itself(tmp_path: Path) -> None:
    """PRE-3, PRE-9: as for an addition."""
    async with node(tmp_path, node_object(cpu="4")) as one:
        await admitted(one, burstable("a", "1", priority=CRITICAL), burstable("b", "2"))
        wanted = burstable("a", "3", priority=CRITICAL)
        first = await one.admission.Admit(resize(wanted))
        named = [victim.pod_uid for victim in first.victims]
        second = await one.admission.Admit(resize(wanted, preempted_pod_uids=named))

    assert (first.verdict, first.reason) == (pb.VERDICT_DEFERRED, "Preempting")
    assert named == ["b"]
    assert second.verdict == pb.VERDICT_ADMITTED


async def test_a_node_that_shuts_down_defers(tmp_path: Path) -> None:
    """RSZ-6: any handler but the first one defers."""
    path = tmp_path / "config.yaml"
    keys = document(tmp_path, hostRoot=str(tmp_path)) | {"shutdownGracePeriod": "30s"}
    path.write_text(yaml.safe_dump(keys))
    opened_node = await Node.open(load_settings(path, os.environ, is_root=False))
    try:
        await opened_node.serving()
        one = OneNode(opened_node)
        await one.admission.SetNode(ad.SetNodeRequest(node=node_object()))
        await admitted(one, burstable("a"))
        await one.admission.SetNodeState(ad.SetNodeStateRequest(shutting_down=True))
        answer = await one.admission.Admit(resize(burstable("a", "2")))
    finally:
        await opened_node.close()

    assert (answer.verdict, answer.handler_reason) == (pb.VERDICT_DEFERRED, "NodeShutdown")


async def test_resizes_come_in_a_stream_as_well(tmp_path: Path) -> None:
    async with node(tmp_path, node_object()) as one:
        await admitted(one, burstable("a"))
        items = [
            ad.AdmitPodsRequest(admit=resize(burstable("a", "2"))),
            ad.AdmitPodsRequest(admit=resize(burstable("b", "2"))),
        ]
        answers = [answer async for answer in one.admission.AdmitPods(iter(items))]

    assert answers[0].decision.verdict == pb.VERDICT_ADMITTED
    assert answers[1].error.code == StatusCode.NOT_FOUND.value[0]
