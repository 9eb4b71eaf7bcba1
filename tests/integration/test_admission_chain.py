"""The chain of admit handlers in a whole node: off without a Node object, in order with one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from grpc import StatusCode, aio
from tests.integration.node_document import GPU, document
from tests.integration.one_node import OneNode, opened

from numalign.config.loader import load_settings
from numalign.errors import ConfigError
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import node_from_json, pod_from_json
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

_CRITICAL = 2_000_000_000


def _pod(name: str, cpu: str = "1", *, gpus: int = 0, **spec: Any) -> core_pb2.Pod:
    amounts = {"cpu": cpu, "memory": "1Gi"} | ({GPU: str(gpus)} if gpus else {})
    return pod_from_json(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "containers": [
                    {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
                ],
                **spec,
            },
        }
    )


def _node(**allocatable: str) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": "node-1", "labels": {"kubernetes.io/os": "linux"}},
        "status": {"allocatable": {"cpu": "14", "memory": "31Gi", "pods": "10"} | allocatable},
    }


def _request(pod: core_pb2.Pod, **fields: Any) -> ad.AdmitRequest:
    return ad.AdmitRequest(pod=pod, **fields)


@asynccontextmanager
async def _opened(directory: Path, **extension: Any) -> AsyncIterator[OneNode]:
    """A node over a host of which nothing can be read, so that it is under no pressure."""
    root = directory / "root"
    root.mkdir(exist_ok=True)
    async with opened(directory, hostRoot=str(root), **extension) as one:
        yield one


async def _set_node(one: OneNode, **allocatable: str) -> None:
    node = node_from_json(_node(**allocatable))
    await one.admission.SetNode(ad.SetNodeRequest(node=node))


async def test_without_a_node_object_the_topology_manager_decides_alone(tmp_path: Path) -> None:
    async with _opened(tmp_path) as one:
        await one.admission.SetNodeState(ad.SetNodeStateRequest(shutting_down=True))
        answer = await one.admission.Admit(_request(_pod("a", nodeName="other")))

    assert answer.verdict == pb.VERDICT_ADMITTED


async def test_what_a_later_handler_refuses_holds_nothing(tmp_path: Path) -> None:
    async with _opened(tmp_path) as one:
        await _set_node(one)
        answer = await one.admission.Admit(_request(_pod("a", nodeName="other")))
        listing = await one.listing()

    assert (answer.verdict, answer.handler) == (pb.VERDICT_REJECTED, "predicates")
    assert answer.reason == "NodeName"
    assert answer.message == (
        "Predicate NodeName failed: node(s) didn't match the requested node name"
    )
    assert not answer.dry_run
    assert list(listing.admissions) == []


async def test_the_kubelets_way_keeps_what_was_allocated(tmp_path: Path) -> None:
    """TOPO-8."""
    async with _opened(tmp_path, compatibility="kubelet") as one:
        await _set_node(one)
        answer = await one.admission.Admit(_request(_pod("a", nodeName="other")))
        listing = await one.listing()

    assert (answer.verdict, answer.reason) == (pb.VERDICT_REJECTED, "NodeName")
    assert [admission.pod_uid for admission in listing.admissions] == ["uid-a"]


async def test_the_topology_managers_reason_comes_first(tmp_path: Path) -> None:
    """ADM-3: a dry run tells, although the predicates refuse as well."""
    async with _opened(tmp_path) as one:
        await _set_node(one)
        answer = await one.admission.Admit(_request(_pod("a", cpu="9", nodeName="other")))

    assert answer.reason == "TopologyAffinityError"
    assert not answer.dry_run


async def test_admitted_pods_count_and_released_ones_do_not(tmp_path: Path) -> None:
    async with _opened(tmp_path) as one:
        await _set_node(one, pods="1")
        first = await one.admission.Admit(_request(_pod("a")))
        second = await one.admission.Admit(_request(_pod("b")))
        again = await one.admission.Admit(_request(_pod("a")))
        await one.admission.Release(ad.ReleaseRequest(pod_uid="uid-a"))
        third = await one.admission.Admit(_request(_pod("b")))

    assert first.verdict == pb.VERDICT_ADMITTED
    assert second.message == (
        "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"
    )
    assert again.already_admitted
    assert third.verdict == pb.VERDICT_ADMITTED


async def test_a_caller_that_needs_the_node_is_told_that_none_is_known(tmp_path: Path) -> None:
    async with _opened(tmp_path) as one:
        with pytest.raises(aio.AioRpcError) as refused:
            await one.admission.Admit(_request(_pod("a"), needs_node=True))
        await _set_node(one)
        answer = await one.admission.Admit(_request(_pod("a"), needs_node=True))

    assert refused.value.code() is StatusCode.FAILED_PRECONDITION
    assert "set it by SetNode" in (refused.value.details() or "")
    assert answer.verdict == pb.VERDICT_ADMITTED


async def test_pods_that_only_the_caller_knows_count(tmp_path: Path) -> None:
    async with _opened(tmp_path) as one:
        await _set_node(one)
        request = _request(_pod("a", cpu="2"), other_pods=[_pod("other", cpu="13")])
        answer = await one.admission.Admit(request)

    assert answer.reason == "OutOfcpu"
    assert answer.message.endswith("requested: 2000, used: 13000, capacity: 14000")


async def test_devices_just_given_count_as_there(tmp_path: Path) -> None:
    """PRED-4: the Node object still says 0."""
    async with _opened(tmp_path) as one:
        await _set_node(one, **{GPU: "0"})
        answer = await one.admission.Admit(_request(_pod("a", gpus=1)))

    assert answer.verdict == pb.VERDICT_ADMITTED
    assert not answer.dry_run


@pytest.mark.parametrize("mode", ["safe", "kubelet"])
async def test_victims_end_first(tmp_path: Path, mode: str) -> None:
    """PRE-9: they are named once, whether or not they could be ended."""
    async with _opened(tmp_path, compatibility=mode) as one:
        await _set_node(one, cpu="3")
        await one.admission.Admit(_request(_pod("small", cpu="1")))
        await one.admission.Admit(_request(_pod("large", cpu="2")))
        critical = _pod("critical", cpu="2", priority=_CRITICAL)
        first = await one.admission.Admit(_request(critical))
        listing = await one.listing()
        named = [victim.pod_uid for victim in first.victims]
        second = await one.admission.Admit(_request(critical, preempted_pod_uids=named))

    assert (first.verdict, first.handler, first.reason) == (
        pb.VERDICT_DEFERRED,
        "predicates",
        "Preempting",
    )
    assert named == ["uid-large"]
    assert first.HasField("retry_after")
    assert len(listing.admissions) == (2 if mode == "safe" else 3)
    assert second.verdict == pb.VERDICT_ADMITTED


async def test_a_caller_that_can_read_the_node_anew_is_asked_to(tmp_path: Path) -> None:
    """PRED-10: nothing is held for the pod meanwhile, and what was set stays."""
    pod = _pod("a", nodeSelector={"zone": "a"})
    fresh = node_from_json(_node())
    fresh.metadata.labels["zone"] = "a"
    async with _opened(tmp_path) as one:
        await _set_node(one)
        asked = await one.admission.Admit(_request(pod, can_read_node=True))
        listing = await one.listing()
        unread = await one.admission.Admit(_request(pod, dry_run=True))
        still_not = await one.admission.Admit(
            _request(pod, can_read_node=True, fresh_node=node_from_json(_node()))
        )
        answer = await one.admission.Admit(_request(pod, can_read_node=True, fresh_node=fresh))
        other = await one.admission.Admit(_request(_pod("b", nodeSelector={"zone": "a"})))

    assert (asked.verdict, asked.handler, asked.reason) == (
        pb.VERDICT_DEFERRED,
        "predicates",
        "FreshNodeNeeded",
    )
    assert asked.HasField("retry_after")
    assert asked.retry_after.ToMilliseconds() == 0
    assert list(listing.admissions) == []
    assert (unread.verdict, unread.reason) == (pb.VERDICT_REJECTED, "NodeAffinity")
    assert (still_not.verdict, still_not.reason) == (pb.VERDICT_REJECTED, "NodeAffinity")
    assert answer.verdict == pb.VERDICT_ADMITTED
    assert other.reason == "NodeAffinity"


async def test_devices_just_given_do_not_count_for_a_node_that_is_read_anew(
    tmp_path: Path,
) -> None:
    """PRED-10, trap 19."""
    fresh = node_from_json(_node(**{GPU: "0"}))
    fresh.metadata.labels["zone"] = "a"
    async with _opened(tmp_path) as one:
        await _set_node(one, **{GPU: "0"})
        pod = _pod("a", gpus=1, nodeSelector={"zone": "a"})
        answer = await one.admission.Admit(_request(pod, fresh_node=fresh))

    assert answer.reason == f"OutOf{GPU}"


@pytest.mark.parametrize("name", ["", "node-2"])
async def test_another_node_is_not_this_one_read_anew(tmp_path: Path, name: str) -> None:
    fresh = node_from_json(_node())
    fresh.metadata.name = name
    async with _opened(tmp_path) as one:
        await _set_node(one)
        with pytest.raises(aio.AioRpcError) as refused:
            await one.admission.Admit(_request(_pod("a"), fresh_node=fresh))

    assert refused.value.code() == StatusCode.INVALID_ARGUMENT
    assert "fresh_node.metadata.name" in (refused.value.details() or "")


async def test_the_node_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(yaml.safe_dump(_node(pods="0")))
    async with _opened(tmp_path, admission={"node": "node.yaml"}) as one:
        answer = await one.admission.Admit(_request(_pod("a")))

    assert answer.reason == "OutOfpods"


async def test_a_file_that_is_no_node_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text("kind: Pod")
    with pytest.raises(ConfigError, match=r"node\.yaml: kind"):
        async with _opened(tmp_path, admission={"node": "node.yaml"}):
            pass


async def test_a_node_without_a_name_is_refused(tmp_path: Path) -> None:
    async with _opened(tmp_path) as one:
        with pytest.raises(aio.AioRpcError) as refused:
            await one.admission.SetNode(ad.SetNodeRequest())

    assert refused.value.code() == StatusCode.INVALID_ARGUMENT
    assert "node.metadata.name" in (refused.value.details() or "")


async def test_a_dry_run_keeps_nothing(tmp_path: Path) -> None:
    async with _opened(tmp_path) as one:
        await _set_node(one)
        admitted = await one.admission.Admit(_request(_pod("a"), dry_run=True))
        refused = await one.admission.Admit(_request(_pod("a", nodeName="b"), dry_run=True))
        listing = await one.listing()

    assert (admitted.verdict, admitted.dry_run) == (pb.VERDICT_ADMITTED, True)
    assert (refused.verdict, refused.dry_run) == (pb.VERDICT_REJECTED, True)
    assert list(listing.admissions) == []


async def test_a_node_that_shuts_down_takes_no_pod(tmp_path: Path) -> None:
    """SHUT-1, ADM-12."""
    (tmp_path / "root").mkdir()
    path = tmp_path / "config.yaml"
    keys = document(tmp_path, hostRoot=str(tmp_path / "root")) | {"shutdownGracePeriod": "30s"}
    path.write_text(yaml.safe_dump(keys))
    node = await Node.open(load_settings(path, os.environ, is_root=False))
    try:
        await node.serving()
        one = OneNode(node)
        await _set_node(one)
        await one.admission.SetNodeState(ad.SetNodeStateRequest(shutting_down=True))
        during = await one.admission.Admit(_request(_pod("a", priority=_CRITICAL)))
        await one.admission.SetNodeState(ad.SetNodeStateRequest(shutting_down=False))
        after = await one.admission.Admit(_request(_pod("a", priority=_CRITICAL)))
    finally:
        await node.close()

    assert (during.handler, during.reason) == ("node-shutdown", "NodeShutdown")
    assert during.message == "Pod was rejected as the node is shutting down."
    assert after.verdict == pb.VERDICT_ADMITTED


async def test_a_sysctl_of_no_namespace_stops_the_start(tmp_path: Path) -> None:
    """SYS-4, DES-7."""
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(document(tmp_path) | {"allowedUnsafeSysctls": ["net*"]}))

    with pytest.raises(ConfigError, match='the sysctls "net" are not known to be namespaced'):
        await Node.open(load_settings(path, os.environ, is_root=False))
