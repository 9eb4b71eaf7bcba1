"""Runner of `podresources` records: the pod resources server over recorded providers.

Separate from the other admission runners because these are calls, made through the server
and a channel within the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
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
from numalign.kube.podresources.v1 import api_pb2_grpc as v1_grpc
from numalign.model.ids import PodUid
from numalign.replay.recordings import Json
from numalign.rpc.channel import open_local_channel
from numalign.rpc.local import LocalServer
from numalign.rpc.methods import Registration
from numalign.telemetry.kubelet_metrics import POD_RESOURCES
from numalign.telemetry.metrics import Metrics


async def pod_resources_server_answer(record: Json) -> Json:
    """Answer or error of the recorded call, and which lists the server asked for, in order."""
    given = record["input"]
    source = RecordedSource(given)
    servicer = PodResourcesServicer(
        source,
        TokenBucket(lambda: 0.0),
        Metrics(POD_RESOURCES, enabled=False),
        list_active=given["list_use_active_pods"],
    )
    server = LocalServer()
    server.add([Registration(v1_grpc.add_PodResourcesListerServicer_to_server, servicer)])
    stub = v1_grpc.PodResourcesListerStub(open_local_channel(server))
    answer: Json = {"error": None, "response": None}
    try:
        answer["response"] = _numbers(
            MessageToDict(await _called(stub, given), preserving_proto_field_name=True)
        )
    except aio.AioRpcError as failed:
        answer["error"] = failed.details()
    return answer | {"provider_calls": source.calls}


class RecordedSource:
    """Answers from the input of one recording and notes what it was asked."""

    def __init__(self, given: Json) -> None:
        self._given = given
        self._pods = [_listed(pod) for pod in given["pods"]]
        self.calls: list[str] = []

    async def active_pods(self) -> Sequence[ListedPod]:
        """The pods that have not ended."""
        self.calls.append("active_pods")
        return [pod for pod in self._pods if pod.uid in self._given["active_uids"]]

    async def all_pods(self) -> Sequence[ListedPod]:
        """Every pod."""
        self.calls.append("all_pods")
        return self._pods

    async def free_ended(self) -> None:
        """Free what ended pods hold."""
        self.calls.append("update_allocated_devices")

    async def find(self, namespace: str, name: str) -> ListedPod | None:
        """The pod of this name."""
        return find_pod(self._pods, namespace, name)

    def held(self, pod_uid: PodUid, container: str) -> Held:
        """What a container holds."""
        self.calls.append(f"devices:{pod_uid}/{container}")
        found = self._given["allocations"].get(pod_uid, {}).get(container)
        namespace = next(pod.namespace for pod in self._pods if pod.uid == pod_uid)
        return NOTHING if found is None else _held(found, namespace)

    async def allocatable(self) -> Held:
        """What the node can give out."""
        return _held(self._given["allocatable"], "")


def _listed(pod: Json) -> ListedPod:
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


def _held(found: Json, namespace: str) -> Held:
    def nodes(entry: Json) -> tuple[int, ...] | None:
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


async def _called(stub: v1_grpc.PodResourcesListerAsyncStub, given: Json) -> Message:
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


def _numbers(value: Any, key: str = "") -> Any:  # noqa: ANN401 - decoded JSON
    """As recorded: 64-bit numbers are numbers."""
    if isinstance(value, dict):
        return {k: _numbers(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_numbers(v, key) for v in value]
    return int(value) if key in {"ID", "size", "cpu_ids"} else value
