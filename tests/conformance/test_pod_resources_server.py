"""Recordings of the kubelet's pod resources server: which pods and containers, which text."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from grpc import aio

from numalign.admission.pod_resources.listing import find_pod
from numalign.admission.pod_resources.rate_limit import TokenBucket
from numalign.admission.pod_resources.servicer import PodResourcesServicer
from numalign.admission.pod_resources.values import (
    NOTHING,
    ClaimedDevice,
    Held,
    HeldClaim,
    HeldDevices,
    HeldMemory,
    Kind,
    ListedContainer,
    ListedPod,
)
from numalign.kube.podresources.v1 import api_pb2 as v1
from numalign.kube.podresources.v1.api_pb2_grpc import (
    PodResourcesListerStub,
    add_PodResourcesListerServicer_to_server,
)
from numalign.model.ids import PodUid
from numalign.rpc.channel import open_local_channel
from numalign.rpc.local import LocalServer
from numalign.rpc.methods import Registration
from numalign.telemetry.kubelet_metrics import POD_RESOURCES
from numalign.telemetry.metrics import Metrics

RECORDINGS = Path(__file__).parent / "recordings" / "admission" / "podresources.jsonl.gz"


def recorded() -> list[dict[str, Any]]:
    with gzip.open(RECORDINGS, "rt") as lines:
        return [json.loads(line) for line in lines]


class RecordedSource:
    """Answers from the input of one recording and notes what it was asked."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given
        self._pods = [listed(pod) for pod in given["pods"]]
        self.calls: list[str] = []

    async def active_pods(self) -> Sequence[ListedPod]:
        self.calls.append("active_pods")
        return [pod for pod in self._pods if pod.uid in self._given["active_uids"]]

    async def all_pods(self) -> Sequence[ListedPod]:
        self.calls.append("all_pods")
        return self._pods

    async def free_ended(self) -> None:
        self.calls.append("update_allocated_devices")

    async def find(self, namespace: str, name: str) -> ListedPod | None:
        return find_pod(self._pods, namespace, name)

    def held(self, pod_uid: PodUid, container: str) -> Held:
        self.calls.append(f"devices:{pod_uid}/{container}")
        found = self._given["allocations"].get(pod_uid, {}).get(container)
        namespace = next(pod.namespace for pod in self._pods if pod.uid == pod_uid)
        return NOTHING if found is None else held(found, namespace)

    async def allocatable(self) -> Held:
        return held(self._given["allocatable"], "")


def listed(pod: dict[str, Any]) -> ListedPod:
    meta, spec = pod["metadata"], pod["spec"]
    inits = [
        ListedContainer(c["name"], Kind.SIDECAR if "restartPolicy" in c else Kind.INIT)
        for c in spec.get("initContainers", ())
    ]
    apps = [ListedContainer(c["name"], Kind.APP) for c in spec["containers"]]
    return ListedPod(
        uid=PodUid(meta["uid"]),
        name=meta["name"],
        namespace=meta["namespace"],
        containers=(*inits, *apps),
    )


def held(found: dict[str, Any], namespace: str) -> Held:
    def nodes(entry: dict[str, Any]) -> tuple[int, ...] | None:
        return None if entry["numa_nodes"] is None else tuple(entry["numa_nodes"])

    return Held(
        devices=tuple(
            HeldDevices(
                resource=d["resource_name"], ids=tuple(d["device_ids"]), numa_nodes=nodes(d)
            )
            for d in found["devices"] or ()
        ),
        cpus=tuple(found["cpu_ids"] or ()),
        memory=tuple(
            HeldMemory(resource=m["memory_type"], size=m["size"], numa_nodes=nodes(m))
            for m in found["memory"] or ()
        ),
        claims=tuple(
            HeldClaim(
                name=claim,
                namespace=namespace,
                devices=(
                    ClaimedDevice(driver="drv.example.com", pool="pool", device=f"d-{claim}"),
                ),
            )
            for claim in found["claims"] or ()
        ),
    )


def test_there_are_recordings_of_every_call() -> None:
    calls = [case["input"]["call"] for case in recorded()]

    assert len(calls) == 41
    assert set(calls) == {"List", "Get", "GetAllocatableResources"}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in recorded()])
async def test_the_server_answers_as_recorded(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    source = RecordedSource(given)
    servicer = PodResourcesServicer(
        source,
        TokenBucket(lambda: 0.0),
        Metrics(POD_RESOURCES, enabled=False),
        list_active=given["list_use_active_pods"],
    )
    server = LocalServer()
    server.add([Registration(add_PodResourcesListerServicer_to_server, servicer)])
    stub = PodResourcesListerStub(open_local_channel(server))
    error, response = None, None
    try:
        response = shown(await called(stub, given))
    except aio.AioRpcError as failed:
        error = failed.details()

    assert error == expected["error"]
    assert response == expected["response"]
    assert source.calls == expected["provider_calls"]


async def called(stub: Any, given: dict[str, Any]) -> Any:
    match given["call"]:
        case "List":
            return await stub.List(v1.ListPodResourcesRequest())
        case "Get":
            return await stub.Get(
                v1.GetPodResourcesRequest(
                    pod_name=given["pod_name"], pod_namespace=given["pod_namespace"]
                )
            )
        case _:
            return await stub.GetAllocatableResources(v1.AllocatableResourcesRequest())


def shown(message: Any) -> Any:
    """As recorded: 64-bit numbers are numbers, what is zero or empty is left out."""
    return numbers(MessageToDict(message, preserving_proto_field_name=True))


def numbers(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {k: numbers(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [numbers(v, key) for v in value]
    return int(value) if key in {"ID", "size", "cpu_ids"} else value
