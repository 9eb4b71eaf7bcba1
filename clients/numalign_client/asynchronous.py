"""The Admission client for programs with asyncio."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

from grpc import StatusCode, aio

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.node_resources_pb2 import NodeResources
from numalign_client.errors import AdmissionError, ServiceUnavailable, error_of, error_of_item
from numalign_client.target import OPTIONS, default_target, target_of
from numalign_client.watching import PictureCursor, WatchCursor
from numalign_client.wire import (
    ADMIT,
    ADMIT_PODS,
    SIMULATE,
    Explain,
    Pod,
    admit_bytes,
    pods_item,
)

T = TypeVar("T")

_BROKEN_UNDER_A_WRITE = "Internal error from Core"
"""What gRPC says of a stream that ended, for whatever reason, while it was written to."""


class AsyncAdmissionClient:
    """Talks to one Admission service over one channel, which it keeps until it is closed.

    Every call takes a `timeout` in seconds (None: no limit) and raises an AdmissionError where
    no decision was made. Belongs to the event loop that runs when it is made.

    >>> async with AsyncAdmissionClient("/run/numalign/admission.sock") as numalign:
    ...     answer = await numalign.admit(pod, dry_run=True)
    ...     print(answer.reason, answer.message)
    """

    def __init__(
        self,
        address: str | os.PathLike[str] | None = None,
        *,
        channel: aio.Channel | None = None,
    ) -> None:
        if channel is None:
            target = default_target() if address is None else target_of(address)
            channel = aio.insecure_channel(target, options=OPTIONS)
        self._channel = channel
        self._stub = AdmissionStub(self._channel)
        self._admit: Callable[..., Awaitable[ad.AdmitResponse]] = self._channel.unary_unary(
            ADMIT, request_serializer=None, response_deserializer=ad.AdmitResponse.FromString
        )
        self._admit_pods: Callable[..., Any] = self._channel.stream_stream(
            ADMIT_PODS,
            request_serializer=None,
            response_deserializer=ad.AdmitPodsResponse.FromString,
        )
        self._simulate: Callable[..., Any] = self._channel.unary_stream(
            SIMULATE, request_serializer=None, response_deserializer=ad.SimulateResponse.FromString
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the channel; calls that are waiting end with CallCancelled."""
        await self._channel.close()

    async def admit(
        self,
        pod: Pod,
        *,
        dry_run: bool = False,
        explain: Explain | str = Explain.NONE,
        owner: str = "",
        resize: bool = False,
        other_pods: Iterable[Pod] = (),
        preempted_pod_uids: Iterable[str] = (),
        can_read_node: bool = False,
        fresh_node: core_pb2.Node | None = None,
        needs_node: bool = False,
        claims: Iterable[cl.FetchedClaim] = (),
        timeout: float | None = None,
    ) -> ad.AdmitResponse:
        """Decide on one pod. An empty `owner` is the service's default.

        `other_pods` are on the node and not admitted here. `preempted_pod_uids` are victims of
        an earlier answer. `can_read_node` and `fresh_node` are for whoever can read the Node
        object anew (docs/admission.md); with `needs_node` nothing is decided while none is known.
        `claims` are the pod's resource claims, for where their devices sit (docs/dra.md).
        """
        request = admit_bytes(
            pod,
            dry_run=dry_run,
            explain=explain,
            owner=owner,
            resize=resize,
            other_pods=other_pods,
            preempted_pod_uids=preempted_pod_uids,
            can_read_node=can_read_node,
            fresh_node=fresh_node,
            needs_node=needs_node,
            claims=claims,
        )
        return await _answer(self._admit(request, timeout=timeout))

    async def admit_pods(
        self,
        pods: Iterable[Pod],
        *,
        dry_run: bool = False,
        explain: Explain | str = Explain.NONE,
        owner: str = "",
        can_read_node: bool = False,
        needs_node: bool = False,
        only_in_order: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[ad.AdmitResponse | AdmissionError]:
        """Decide on pods in one stream; what `admit` would give or raise for each, in order.

        Faster than one call for each: several are recorded together. `timeout` is for all of them.
        With `only_in_order` no pod is judged behind one that has no decision, or whose decision
        asks for something first, such as an end of victims: these have an error of code ABORTED.
        Raises an AdmissionError where the stream ends early; whether a pod without an answer was
        admitted is said where it is asked about again.
        """
        requests = (
            pods_item(
                admit_bytes(
                    pod,
                    dry_run=dry_run,
                    explain=explain,
                    owner=owner,
                    resize=False,
                    can_read_node=can_read_node,
                    needs_node=needs_node,
                    only_in_order=only_in_order,
                )
            )
            for pod in pods
        )
        call = self._admit_pods(requests, timeout=timeout)
        try:
            async for answer in call:
                if answer.HasField("error"):
                    yield error_of_item(answer.error.code, answer.error.message)
                else:
                    yield answer.decision
        except aio.AioRpcError as failed:
            if failed.details() == _BROKEN_UNDER_A_WRITE:
                text = "the stream ended while pods were still sent"
                raise ServiceUnavailable(StatusCode.UNAVAILABLE, text) from failed
            raise error_of(failed) from failed
        finally:
            call.cancel()

    async def release(
        self,
        pod_uid: str,
        *,
        timeout: float | None = None,
    ) -> int:
        """Give back what a pod holds; the node's revision afterwards."""
        request = ad.ReleaseRequest(pod_uid=pod_uid)
        return (await _answer(self._stub.Release(request, timeout=timeout))).revision

    async def reconcile(
        self,
        active_pod_uids: Iterable[str],
        *,
        owner: str = "",
        running_containers: Iterable[pb.RunningContainer] = (),
        as_of_revision: int,
        sources_ready: bool,
        timeout: float | None = None,
    ) -> ad.ReconcileResponse:
        """Say which pods the owner still has; the others of the owner are released."""
        request = ad.ReconcileRequest(
            owner=owner,
            active_pod_uids=active_pod_uids,
            running_containers=running_containers,
            as_of_revision=as_of_revision,
            sources_ready=sources_ready,
        )
        return await _answer(self._stub.Reconcile(request, timeout=timeout))

    async def prepare_pod(
        self,
        pod: core_pb2.Pod,
        claims: Iterable[cl.FetchedClaim],
        *,
        timeout: float | None = None,
    ) -> ad.PreparePodResponse:
        """Have the resource claims of an admitted pod prepared; asking again is always right."""
        request = ad.PreparePodRequest(pod=pod, claims=claims)
        return await _answer(self._stub.PreparePod(request, timeout=timeout))

    async def prepare_container(
        self,
        pod_uid: str,
        container: str,
        *,
        timeout: float | None = None,
    ) -> ad.PrepareContainerResponse:
        """What is to be applied to a container before it starts."""
        request = ad.PrepareContainerRequest(pod_uid=pod_uid, container_name=container)
        return await _answer(self._stub.PrepareContainer(request, timeout=timeout))

    async def add_container(
        self,
        pod_uid: str,
        container: str,
        container_id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """A container is about to start: what finished init containers held is freed."""
        request = ad.AddContainerRequest(
            pod_uid=pod_uid, container_name=container, container_id=container_id
        )
        await _answer(self._stub.AddContainer(request, timeout=timeout))

    async def remove_container(
        self,
        container_id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """A container is gone from the runtime. An unknown id is not an error."""
        request = ad.RemoveContainerRequest(container_id=container_id)
        await _answer(self._stub.RemoveContainer(request, timeout=timeout))

    async def list_admissions(
        self,
        *,
        owner: str = "",
        timeout: float | None = None,
    ) -> ad.ListAdmissionsResponse:
        """The admitted pods of an owner, or (empty) of all."""
        request = ad.ListAdmissionsRequest(owner=owner)
        return await _answer(self._stub.ListAdmissions(request, timeout=timeout))

    async def list_decisions(
        self, request: dc.ListDecisionsRequest, *, timeout: float | None = None
    ) -> dc.ListDecisionsResponse:
        """What was decided of late, as the journal has it, the newest first."""
        return await _answer(self._stub.ListDecisions(request, timeout=timeout))

    async def get_decision(
        self, request: dc.GetDecisionRequest, *, timeout: float | None = None
    ) -> dc.DecisionRecord:
        """One decision of the journal with its explanation."""
        return (await _answer(self._stub.GetDecision(request, timeout=timeout))).decision

    async def simulate(
        self, request: ad.SimulateRequest | bytes, *, timeout: float | None = None
    ) -> list[ad.SimulateResponse]:
        """What would be decided on pods: what is simulated, then the answer to each, in order.

        `request` is the message or its bytes.
        """
        data = request if isinstance(request, bytes) else request.SerializeToString()
        call = self._simulate(data, timeout=timeout)
        try:
            return [response async for response in call]
        except aio.AioRpcError as failed:
            raise error_of(failed) from failed
        finally:
            call.cancel()

    async def set_node(
        self,
        node: core_pb2.Node,
        *,
        timeout: float | None = None,
    ) -> None:
        """Tell what the Node object says now; it is forgotten when the service restarts."""
        await _answer(self._stub.SetNode(ad.SetNodeRequest(node=node), timeout=timeout))

    async def set_node_state(
        self,
        *,
        shutting_down: bool,
        timeout: float | None = None,
    ) -> None:
        """Tell whether the node is shutting down."""
        request = ad.SetNodeStateRequest(shutting_down=shutting_down)
        await _answer(self._stub.SetNodeState(request, timeout=timeout))

    async def get_node_resources(
        self,
        *,
        timeout: float | None = None,
    ) -> NodeResources:
        """What the node has, and what of it is free."""
        request = ad.GetNodeResourcesRequest()
        return (await _answer(self._stub.GetNodeResources(request, timeout=timeout))).resources

    async def watch_node_resources(
        self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> AsyncGenerator[NodeResources]:
        """What the node has now, and again whenever it is something else, without end.

        An interrupted watch goes on by itself.
        """
        cursor = PictureCursor()
        while True:
            call = self._stub.WatchNodeResources(ad.WatchNodeResourcesRequest())
            error = None
            try:
                async for response in call:
                    if cursor.is_new(response.resources):
                        yield response.resources
            except aio.AioRpcError as failed:
                error = error_of(failed)
            finally:
                call.cancel()
            await sleep(cursor.interrupted(error))

    async def watch_assignments(
        self,
        from_revision: int = 0,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> AsyncGenerator[ad.WatchAssignmentsResponse]:
        """What is admitted now, a `synced` marker, then every change, without end.

        An interrupted watch is resumed after the last revision seen. Where the service no
        longer has that history, the picture is sent again from the beginning, and pods that
        are gone are reported as released before its `synced`.
        """
        cursor = WatchCursor(from_revision)
        while True:
            request = ad.WatchAssignmentsRequest(from_revision=cursor.revision)
            call = self._stub.WatchAssignments(request)
            error = None
            try:
                async for event in call:
                    for owed in cursor.events(event):
                        yield owed
            except aio.AioRpcError as failed:
                error = error_of(failed)
            finally:
                call.cancel()
            await sleep(cursor.interrupted(error))


async def _answer(call: Awaitable[T]) -> T:
    try:
        return await call
    except aio.AioRpcError as failed:
        raise error_of(failed) from failed
