"""Another configuration of the chain of admit handlers while it runs: all of it, or none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.unit.process.observed_world import pod
from tests.unit.process.reloading_world import World, running

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import node_from_json
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


@asynccontextmanager
async def _judging(directory: Path, **kubelet: Any) -> AsyncIterator[World]:
    """A node that knows its Node object, over a host of which nothing can be read."""
    root = directory / "root"
    root.mkdir()
    async with running(directory, **kubelet) as world:
        await world.reload({"hostRoot": str(root)})
        node = node_from_json(
            {
                "metadata": {"name": "n"},
                "status": {"allocatable": {"cpu": "14", "memory": "30Gi", "pods": "9"}},
            }
        )
        await world.admission.SetNode(ad.SetNodeRequest(node=node))
        yield world


def _with_sysctl(name: str) -> core_pb2.Pod:
    message = pod(name)
    message.spec.security_context.sysctls.add(name="net.core.somaxconn", value="1")
    return message


async def _reason(world: World, message: core_pb2.Pod) -> str:
    request = ad.AdmitRequest(pod=message, dry_run=True)
    return (await world.admission.Admit(request)).reason


async def test_other_sysctls(tmp_path: Path) -> None:
    async with _judging(tmp_path) as world:
        before = await _reason(world, _with_sysctl("a"))
        answer = await world.reload(allowedUnsafeSysctls=["net.core.*"])
        after = await _reason(world, _with_sysctl("a"))

    assert (before, after) == ("SysctlForbidden", "")
    assert (list(answer.applied), list(answer.needs_restart)) == (["allowedUnsafeSysctls"], [])


async def test_a_shutdown_grace_period(tmp_path: Path) -> None:
    """SHUT-2: what was told before counts from then on."""
    async with _judging(tmp_path) as world:
        await world.admission.SetNodeState(ad.SetNodeStateRequest(shutting_down=True))
        before = await _reason(world, pod("a"))
        answer = await world.reload(shutdownGracePeriod="30s")
        after = await _reason(world, pod("a"))

    assert (before, after) == ("", "NodeShutdown")
    assert list(answer.applied) == ["shutdownGracePeriod"]


async def test_other_feature_gates_and_another_chain(tmp_path: Path) -> None:
    message = pod("a")
    message.spec.resources.requests["cpu"].string = "1"
    async with _judging(tmp_path) as world:
        before = await _reason(world, message)
        gates = {
            "PodLevelResources": False,
            "PodLevelResourceManagers": False,
            "InPlacePodLevelResourcesVerticalScaling": False,
        }
        answer = await world.reload(featureGates=gates)
        without = await _reason(world, message)
        await world.reload({"admission": {"chain": "v1.31"}})
        old = await _reason(world, message)

    assert (before, without, old) == ("", "PodLevelResourcesNotSupported", "")
    assert list(answer.applied) == ["featureGates"]
    assert list(answer.needs_restart) == []


async def test_another_file_with_a_node_object(tmp_path: Path) -> None:
    (tmp_path / "full.yaml").write_text(
        "{metadata: {name: n}, status: {allocatable: {pods: 0}}}", encoding="utf-8"
    )
    async with running(tmp_path) as world:
        before = await _reason(world, pod("a"))
        await world.reload({"admission": {"node": "full.yaml"}})
        after = await _reason(world, pod("a"))

    assert (before, after) == ("", "OutOfpods")


async def test_a_handler_of_others_comes_and_goes(tmp_path: Path) -> None:
    handler = {"name": "away", "endpoint": str(tmp_path / "no.sock")}
    async with running(tmp_path) as world:
        await world.reload({"admission": {"handlers": [handler]}})
        with pytest.raises(aio.AioRpcError) as failed:
            await world.admit("a")
        handler["failurePolicy"] = "Ignore"
        await world.reload({"admission": {"handlers": [handler]}})
        ignored = await world.admit("a")
        await world.reload({"admission": {"handlers": []}})
        alone = await world.admit("b")

    assert failed.value.code() is StatusCode.UNAVAILABLE
    assert 'admit handler "away"' in (failed.value.details() or "")
    assert ignored.verdict == alone.verdict == pb.VERDICT_ADMITTED
    assert (len(ignored.warnings), len(alone.warnings)) == (1, 0)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        pytest.param({"allowedUnsafeSysctls": ["net*"]}, "not known to be namespaced", id="sysctl"),
        pytest.param(
            {"evictionHard": {"memory.available": "-1"}}, "must be positive", id="threshold"
        ),
        pytest.param({"evictionSoft": {"disk": "1"}}, "unsupported eviction signal", id="signal"),
        pytest.param({"shutdownGracePeriod": "soon"}, "shutdownGracePeriod", id="period"),
        pytest.param({"numalign": {"admission": {"node": "no.yaml"}}}, "no.yaml", id="node"),
    ],
)
async def test_what_cannot_be_used_changes_nothing(
    tmp_path: Path, keys: dict[str, Any], problem: str
) -> None:
    numalign = keys.pop("numalign", None)
    async with _judging(tmp_path) as world:
        with pytest.raises(aio.AioRpcError) as refused:
            await world.reload(numalign, topologyManagerPolicy="none", **keys)
        policy = (await world.policy()).policy
        reason = await _reason(world, _with_sysctl("a"))

    assert refused.value.code() is StatusCode.FAILED_PRECONDITION
    assert problem in (refused.value.details() or "")
    assert policy != "none"
    assert reason == "SysctlForbidden"
