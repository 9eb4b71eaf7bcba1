"""The Admission client for programs without asyncio."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import grpc

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.node_resources_pb2 import NodeResources
from numalign_client.errors import error_of, failed_call
from numalign_client.target import OPTIONS, default_target, target_of
from numalign_client.watching import PictureCursor, WatchCursor
from numalign_client.wire import ADMIT, SIMULATE, Explain, Pod, admit_bytes


class AdmissionClient:
    """Talks to one Admission service over one channel, which it keeps until it is closed.

    Every call takes a `timeout` in seconds (None: no limit) and raises an AdmissionError where
    no decision was made. Safe to use from several threads.

    >>> with AdmissionClient("/run/numalign/admission.sock") as numalign:
    ...     answer = numalign.admit(pod, explain="summary")
    ...     if answer.verdict == types_pb2.VERDICT_ADMITTED:
    ...         cpus = answer.allocations[0].cpus
    """

    def __init__(
        self,
        address: str | os.PathLike[str] | None = None,
        *,
        channel: grpc.Channel | None = None,
    ) -> None:
        if channel is None:
            target = default_target() if address is None else target_of(address)
            channel = grpc.insecure_channel(target, options=OPTIONS)
        self._channel = channel
        self._stub = AdmissionStub(self._channel)
        self._admit: Callable[..., ad.AdmitResponse] = self._channel.unary_unary(
            ADMIT, request_serializer=None, response_deserializer=ad.AdmitResponse.FromString
        )
        self._simulate: Callable[..., Iterable[ad.SimulateResponse]] = self._channel.unary_stream(
            SIMULATE, request_serializer=None, response_deserializer=ad.SimulateResponse.FromString
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the channel; calls that are waiting end with CallCancelled."""
        self._channel.close()

    def admit(
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
        with _errors():
            return self._admit(request, timeout=timeout)

    def release(self, pod_uid: str, *, timeout: float | None = None) -> int:
        """Give back what a pod holds; the node's revision afterwards."""
        with _errors():
            return self._stub.Release(ad.ReleaseRequest(pod_uid=pod_uid), timeout=timeout).revision

    def reconcile(
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
        with _errors():
            return self._stub.Reconcile(request, timeout=timeout)

    def prepare_pod(
        self,
        pod: core_pb2.Pod,
        claims: Iterable[cl.FetchedClaim],
        *,
        timeout: float | None = None,
    ) -> ad.PreparePodResponse:
        """Have the resource claims of an admitted pod prepared; asking again is always right."""
        with _errors():
            return self._stub.PreparePod(
                ad.PreparePodRequest(pod=pod, claims=claims), timeout=timeout
            )

    def prepare_container(
        self, pod_uid: str, container: str, *, timeout: float | None = None
    ) -> ad.PrepareContainerResponse:
        """What is to be applied to a container before it starts."""
        request = ad.PrepareContainerRequest(pod_uid=pod_uid, container_name=container)
        with _errors():
            return self._stub.PrepareContainer(request, timeout=timeout)

    def add_container(
        self, pod_uid: str, container: str, container_id: str, *, timeout: float | None = None
    ) -> None:
        """A container is about to start: what finished init containers held is freed."""
        request = ad.AddContainerRequest(
            pod_uid=pod_uid, container_name=container, container_id=container_id
        )
        with _errors():
            self._stub.AddContainer(request, timeout=timeout)

    def remove_container(self, container_id: str, *, timeout: float | None = None) -> None:
        """A container is gone from the runtime. An unknown id is not an error."""
        with _errors():
            self._stub.RemoveContainer(
                ad.RemoveContainerRequest(container_id=container_id), timeout=timeout
            )

    def list_admissions(
        self, *, owner: str = "", timeout: float | None = None
    ) -> ad.ListAdmissionsResponse:
        """The admitted pods of an owner, or (empty) of all."""
        with _errors():
            return self._stub.ListAdmissions(ad.ListAdmissionsRequest(owner=owner), timeout=timeout)

    def list_decisions(
        self, request: dc.ListDecisionsRequest, *, timeout: float | None = None
    ) -> dc.ListDecisionsResponse:
        """What was decided of late, as the journal has it, the newest first."""
        with _errors():
            return self._stub.ListDecisions(request, timeout=timeout)

    def get_decision(
        self, request: dc.GetDecisionRequest, *, timeout: float | None = None
    ) -> dc.DecisionRecord:
        """One decision of the journal with its explanation."""
        with _errors():
            return self._stub.GetDecision(request, timeout=timeout).decision

    def simulate(
        self, request: ad.SimulateRequest | bytes, *, timeout: float | None = None
    ) -> list[ad.SimulateResponse]:
        """What would be decided on pods: what is simulated, then the answer to each, in order.

        `request` is the message or its bytes.
        """
        data = request if isinstance(request, bytes) else request.SerializeToString()
        with _errors():
            return list(self._simulate(data, timeout=timeout))

    def set_node(self, node: core_pb2.Node, *, timeout: float | None = None) -> None:
        """Tell what the Node object says now; it is forgotten when the service restarts."""
        with _errors():
            self._stub.SetNode(ad.SetNodeRequest(node=node), timeout=timeout)

    def set_node_state(self, *, shutting_down: bool, timeout: float | None = None) -> None:
        """Tell whether the node is shutting down."""
        with _errors():
            self._stub.SetNodeState(
                ad.SetNodeStateRequest(shutting_down=shutting_down), timeout=timeout
            )

    def get_node_resources(self, *, timeout: float | None = None) -> NodeResources:
        """What the node has, and what of it is free."""
        with _errors():
            return self._stub.GetNodeResources(
                ad.GetNodeResourcesRequest(), timeout=timeout
            ).resources

    def watch_node_resources(
        self, *, sleep: Callable[[float], None] = time.sleep
    ) -> Generator[NodeResources]:
        """What the node has now, and again whenever it is something else, without end.

        An interrupted watch goes on by itself. Ends by closing the iterator, or with
        CallCancelled when the client is closed.
        """
        cursor = PictureCursor()
        while True:
            call = self._stub.WatchNodeResources(ad.WatchNodeResourcesRequest())
            error = None
            try:
                for response in call:
                    if cursor.is_new(response.resources):
                        yield response.resources
            except grpc.RpcError as failed:
                error = error_of(failed_call(failed))
            finally:
                call.cancel()
            sleep(cursor.interrupted(error))

    def watch_assignments(
        self, from_revision: int = 0, *, sleep: Callable[[float], None] = time.sleep
    ) -> Generator[ad.WatchAssignmentsResponse]:
        """What is admitted now, a `synced` marker, then every change, without end.

        An interrupted watch is resumed after the last revision seen. Where the service no
        longer has that history, the picture is sent again from the beginning, and pods that
        are gone are reported as released before its `synced`. Ends by closing the iterator, or
        with CallCancelled when the client is closed.
        """
        cursor = WatchCursor(from_revision)
        while True:
            request = ad.WatchAssignmentsRequest(from_revision=cursor.revision)
            call = self._stub.WatchAssignments(request)
            error = None
            try:
                for event in call:
                    yield from cursor.events(event)
            except grpc.RpcError as failed:
                error = error_of(failed_call(failed))
            finally:
                call.cancel()
            sleep(cursor.interrupted(error))


@contextmanager
def _errors() -> Generator[None]:
    try:
        yield
    except grpc.RpcError as failed:
        raise error_of(failed_call(failed)) from failed
