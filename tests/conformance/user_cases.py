"""Nodes in the mode of a user case, and what is asked of them: for the tests of these cases."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from numalign.config.loader import load_settings
from numalign.config.scenario_node import ScenarioNode, scenario_document
from numalign.config.settings import Service
from numalign.kube.pod_json import pod_from_json
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub

CASES = {
    case["id"]: case
    for case in map(
        json.loads,
        (Path(__file__).parent / "recordings" / "user-cases.jsonl").read_text().splitlines(),
    )
}
GIB = 1 << 30


class Agent:
    """A node under test and what its agent asks."""

    def __init__(self, node: Node) -> None:
        self._admission = AdmissionStub(node.channel(Service.ADMISSION))
        self._cpu = HintProviderStub(node.channel(Service.CPU))

    async def admit(self, pod: Mapping[str, Any]) -> ad.AdmitResponse:
        return await self._admission.Admit(
            ad.AdmitRequest(pod=pod_from_json(pod), explain=pb.EXPLAIN_LEVEL_FULL), timeout=60
        )

    async def dry_run(self, pod: Mapping[str, Any]) -> ad.AdmitResponse:
        request = ad.AdmitRequest(pod=pod_from_json(pod), dry_run=True)
        return await self._admission.Admit(request, timeout=60)

    async def admit_in_one_stream(self, *pods: Mapping[str, Any]) -> list[ad.AdmitResponse]:
        requests = [
            ad.AdmitPodsRequest(
                admit=ad.AdmitRequest(pod=pod_from_json(pod), explain=pb.EXPLAIN_LEVEL_FULL)
            )
            for pod in pods
        ]
        answers = self._admission.AdmitPods(iter(requests), timeout=30)
        return [answer.decision async for answer in answers]

    async def release(self, uid: str) -> None:
        await self._admission.Release(ad.ReleaseRequest(pod_uid=uid))

    async def shared_cpus(self) -> str:
        return (await self._cpu.GetState(hp.GetStateRequest())).cpu.default_cpus


@asynccontextmanager
async def agent_of(
    case: str,
    node: ScenarioNode,
    directory: Path,
    gates: Mapping[str, bool] | None = None,
    /,
    **extension: object,
) -> AsyncIterator[Agent]:
    """A node in the mode of a case, over the state that is in `directory`.

    `extension` are further keys of the `numalign` section.
    """
    places = {"stateDirectory": str(directory / "state"), "runtimeDirectory": str(directory)}
    section = {**places, "compatibility": CASES[case]["mode"], **extension}
    path = directory / "config.json"
    path.write_text(json.dumps(scenario_document(node, gates or {}, section)))
    node_here = await Node.open(load_settings(path, {}, is_root=False))
    try:
        await node_here.serving()
        yield Agent(node_here)
    finally:
        await node_here.close()


def numa_node(number: int, cores: list[list[int]], **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "memory_bytes": 16 * GIB,
        "hugepages": [],
        "distances": None,
        "cores": [
            {"id": index, "socket_id": number, "threads": threads, "uncore_cache_id": number}
            for index, threads in enumerate(cores)
        ],
        **more,
    }


def node_of(
    numa_nodes: list[dict[str, Any]],
    *,
    policy: str = "none",
    scope: str = "container",
    reserved: str = "",
    options: Mapping[str, str] | None = None,
    memory: bool = False,
) -> ScenarioNode:
    quantities = {"memory": str(GIB)}
    return {
        "machine": {"numa_nodes": numa_nodes},
        "topology_manager": {"policy": policy, "scope": scope, "policy_options": {}},
        "cpu_manager": {
            "policy": "static",
            "policy_options": dict(options or {}),
            "reserved_cpus": reserved,
        },
        "memory_manager": {
            "policy": "Static" if memory else "None",
            "reserved_memory": [{"numa_node": 0, "limits": quantities}] if memory else [],
            "node_allocatable_reservation": quantities if memory else {},
        },
        "devices": [],
    }


def pod(uid: str, whole: Mapping[str, str] | None = None, **amounts: str) -> dict[str, Any]:
    """A guaranteed pod of one container; `whole` are pod-level resources."""
    named = {name.replace("_", "-"): text for name, text in amounts.items()}
    given = {"memory": "1Mi", **named} if named else {}
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "resources": {"requests": given, "limits": given}}]
    }
    if whole is not None:
        spec["resources"] = {"requests": whole, "limits": whole}
    return {"metadata": {"uid": uid, "name": uid, "namespace": "default"}, "spec": spec}


def burstable_pod(uid: str, cpu: str) -> dict[str, Any]:
    """A pod of one container that only requests."""
    of = pod(uid, cpu=cpu)
    del of["spec"]["containers"][0]["resources"]["limits"]
    return of


def with_init(app: dict[str, Any], **amounts: str) -> dict[str, Any]:
    """A pod with an init container `i` in front of its own."""
    (init,) = pod("i", None, **amounts)["spec"]["containers"]
    app["spec"]["initContainers"] = [{**init, "name": "i"}]
    return app


def with_second(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The first pod with the container of the second one, called `second`, behind its own."""
    (other,) = second["spec"]["containers"]
    first["spec"]["containers"].append({**other, "name": "second"})
    return first


def single_threads(first: int, count: int) -> list[list[int]]:
    return [[cpu] for cpu in range(first, first + count)]
