"""The client for programs without asyncio: typed answers, deadlines, and tries anew.

Separate from `blocking`, which makes each call once and gives messages.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import grpc

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign.v1.node_resources_pb2 import NodeResources
from numalign_client.blocking import AdmissionClient
from numalign_client.errors import NotAdmitted, ServiceUnavailable
from numalign_client.objects import NodeLike, PodLike, given_node, given_pod
from numalign_client.pacing import Pacing, Retry
from numalign_client.wire import Explain

if TYPE_CHECKING:
    from datetime import datetime

    from numalign_client.journal import History, PastDecision
    from numalign_client.results import (
        Admissions,
        AssignmentEvent,
        Decision,
        Preparation,
        Reconciliation,
        Verdict,
    )
    from numalign_client.simulation import Simulation


T = TypeVar("T")

_FRESH_NODE_NEEDED = "FreshNodeNeeded"


class Client:
    """Talks to one Admission service over one channel, which it keeps until it is closed.

    `address` is the socket; without one NUMALIGN_SOCKET names it, else it is where numalign listens
    by default: `/run/numalign/admission.sock` for root, for others below `$XDG_RUNTIME_DIR`. Every
    call may take `timeout` seconds, with all its tries: one that ends with UNAVAILABLE is made
    again after a pause, as `retry` says, and no other is. A call's own `timeout` counts instead of
    the client's; math.inf is no limit. What raises is an AdmissionError: then no decision was made,
    and nothing was kept.

    Safe to use from several threads.

    >>> with Client() as numalign:
    ...     decision = numalign.admit(Path("pod.yaml"), explain="summary")
    ...     print(decision, decision.summary)
    """

    def __init__(
        self,
        address: str | os.PathLike[str] | None = None,
        *,
        timeout: float = 60.0,
        retry: Retry | None = None,
        channel: grpc.Channel | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.messages = AdmissionClient(address, channel=channel)
        self._timeout = timeout
        self._retry = Retry() if retry is None else retry
        self._sleep = sleep
        self._pacing(None)

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
        self.messages.close()

    def admit(
        self,
        pod: PodLike,
        *,
        dry_run: bool = False,
        explain: Explain | str = Explain.NONE,
        owner: str = "",
        resize: bool = False,
        other_pods: Iterable[PodLike] = (),
        preempted_pod_uids: Iterable[str] = (),
        needs_node: bool = False,
        read_node: Callable[[], NodeLike] | None = None,
        timeout: float | None = None,
    ) -> Decision:
        """Decide on one pod.

        - `dry_run`: only say what would be decided;
        - `explain`: `none`, `summary` or `full`;
        - `owner`: the caller's domain; empty is the service's default;
        - `resize`: the CPU or memory of an admitted pod is to be what `pod` says; rejected, it
          never can be here, deferred, it may be later, and the pod keeps `resources`;
        - `other_pods`: pods on the node that are not admitted here, and admitted ones whose
          containers use something else than they are allocated, with their status;
        - `preempted_pod_uids`: victims of an earlier decision that were ended;
        - `needs_node`: PreconditionFailed on `node` while the service knows no Node object;
        - `read_node`: reads the Node object anew, where node affinity alone stands in the way.

        A pod without a uid gets one that depends on namespace and name alone. Raises
        InvalidRequest for a pod that is none, naming every field, TypeError and ValueError for
        arguments that are none, before anything is sent.
        """
        from numalign_client.answers import decision

        given = given_pod(pod)
        others = [given_pod(other).data for other in other_pods]
        preempted = list(preempted_pod_uids)
        pacing = self._pacing(timeout)

        def ask(fresh_node: core_pb2.Node | None, *, can_read_node: bool) -> ad.AdmitResponse:
            return self._again(
                lambda seconds: self.messages.admit(
                    given.data,
                    dry_run=dry_run,
                    explain=explain,
                    owner=owner,
                    resize=resize,
                    other_pods=others,
                    preempted_pod_uids=preempted,
                    needs_node=needs_node,
                    can_read_node=can_read_node,
                    fresh_node=fresh_node,
                    timeout=seconds,
                ),
                pacing,
            )

        response = ask(None, can_read_node=read_node is not None)
        if read_node is None or response.reason != _FRESH_NODE_NEEDED:
            return decision(response, given)
        try:
            node = given_node(read_node())
        except Exception as error:  # PRED-10: the first look stands
            warning = f"the Node object could not be read anew: {error}"
            response = ask(None, can_read_node=False)
            return decision(response, given, warning)
        return decision(ask(node, can_read_node=False), given)

    def release(
        self, pod_uid: str, *, missing_ok: bool = False, timeout: float | None = None
    ) -> None:
        """Give back what a pod holds.

        Raises NotAdmitted for a pod that is not admitted, unless `missing_ok`; not if an earlier
        try of this call may have released it.
        """
        pacing = self._pacing(timeout)
        try:
            self._again(lambda seconds: self.messages.release(pod_uid, timeout=seconds), pacing)
        except NotAdmitted:
            if not missing_ok and pacing.tries == 1:
                raise

    def reconcile(
        self,
        active_pod_uids: Iterable[str],
        *,
        owner: str = "",
        running_containers: Iterable[pb.RunningContainer] = (),
        as_of_revision: int,
        sources_ready: bool,
        timeout: float | None = None,
    ) -> Reconciliation:
        """Say which pods the owner still has; the others of the owner are released.

        Pods that were admitted after `as_of_revision` are not touched, and none is while
        `sources_ready` is False.
        """
        from numalign_client.answers import reconciliation

        active, running = list(active_pod_uids), list(running_containers)
        return reconciliation(
            self._again(
                lambda seconds: self.messages.reconcile(
                    active,
                    owner=owner,
                    running_containers=running,
                    as_of_revision=as_of_revision,
                    sources_ready=sources_ready,
                    timeout=seconds,
                ),
                self._pacing(timeout),
            )
        )

    def prepare_container(
        self, pod_uid: str, container: str, *, timeout: float | None = None
    ) -> Preparation:
        """What is to be applied to a container before it starts."""
        from numalign_client.answers import preparation

        return preparation(
            self._again(
                lambda seconds: self.messages.prepare_container(
                    pod_uid, container, timeout=seconds
                ),
                self._pacing(timeout),
            )
        )

    def add_container(
        self, pod_uid: str, container: str, container_id: str, *, timeout: float | None = None
    ) -> None:
        """A container is about to start: what finished init containers held is freed."""
        self._again(
            lambda seconds: self.messages.add_container(
                pod_uid, container, container_id, timeout=seconds
            ),
            self._pacing(timeout),
        )

    def remove_container(self, container_id: str, *, timeout: float | None = None) -> None:
        """A container is gone from the runtime. An unknown id is not an error."""
        self._again(
            lambda seconds: self.messages.remove_container(container_id, timeout=seconds),
            self._pacing(timeout),
        )

    def admissions(self, *, owner: str = "", timeout: float | None = None) -> Admissions:
        """The admitted pods of an owner, or (empty) of all."""
        from numalign_client.answers import admissions

        return admissions(
            self._again(
                lambda seconds: self.messages.list_admissions(owner=owner, timeout=seconds),
                self._pacing(timeout),
            )
        )

    def decisions(
        self,
        *,
        verdicts: Iterable[Verdict | str] = (),
        reasons: Iterable[str] = (),
        pod: str = "",
        owner: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        explanations: bool = False,
        timeout: float | None = None,
    ) -> History:
        """What was decided of late, the newest first; what is not named leaves nothing out.

        `pod` is a UID, `<namespace>/<name>` or a name. Explanations come with `explanations`.
        Raises PreconditionFailed where the service keeps no journal.
        """
        from numalign_client.journal import decisions_request, history

        request = decisions_request(
            verdicts=verdicts,
            reasons=reasons,
            pod=pod,
            owner=owner,
            since=since,
            until=until,
            limit=limit,
            explanations=explanations,
        )
        return history(
            self._again(
                lambda seconds: self.messages.list_decisions(request, timeout=seconds),
                self._pacing(timeout),
            )
        )

    def explain(
        self, pod: str = "", *, number: int = 0, timeout: float | None = None
    ) -> PastDecision:
        """The last decision on a pod, or the one of this number, with its whole explanation.

        `pod` is a UID, `<namespace>/<name>` or a name. Raises NotAdmitted where the journal has
        no such decision, saying how far back it goes.
        """
        from numalign_client.journal import decision_request, past_decision

        request = decision_request(pod, number)
        return past_decision(
            self._again(
                lambda seconds: self.messages.get_decision(request, timeout=seconds),
                self._pacing(timeout),
            )
        )

    def simulate(
        self,
        pods: Iterable[PodLike],
        *,
        policy: str = "",
        scope: str = "",
        configuration: str | os.PathLike[str] = "",
        node: NodeLike | None = None,
        explain: Explain | str = Explain.NONE,
        timeout: float | None = None,
    ) -> Simulation:
        """What would be decided on pods in this order, each beside those before it.

        The node has them decided on over a copy of it: nothing is kept, and no admission waits.

        - `policy`, `scope`: in place of the node's;
        - `configuration`: in place of the node's, the text of a KubeletConfiguration or the path
          of a file with one; the machine, its devices and its pods stay;
        - `node`: judge by this Node object, too;
        - `explain`: `none`, `summary` or `full`.

        Raises InvalidRequest for a pod that is none, or naming the field that is wrong, and
        UnsupportedRequest where the service is too old to simulate.
        """
        from numalign_client.simulation import simulate_request, simulation

        given = [given_pod(pod) for pod in pods]
        request = simulate_request(
            given,
            policy=policy,
            scope=scope,
            configuration=configuration,
            node=node,
            explain=explain,
        )
        return simulation(
            self._again(
                lambda seconds: self.messages.simulate(request, timeout=seconds),
                self._pacing(timeout),
            ),
            given,
        )

    def node_resources(self, *, timeout: float | None = None) -> NodeResources:
        """What the node has, and what of it is free, as the message of the contract."""
        return self._again(
            lambda seconds: self.messages.get_node_resources(timeout=seconds),
            self._pacing(timeout),
        )

    def set_node(self, node: NodeLike, *, timeout: float | None = None) -> None:
        """Tell what the Node object says now; it is forgotten when the service restarts."""
        message = given_node(node)
        self._again(
            lambda seconds: self.messages.set_node(message, timeout=seconds), self._pacing(timeout)
        )

    def set_node_state(self, *, shutting_down: bool, timeout: float | None = None) -> None:
        """Tell whether the node is shutting down."""
        self._again(
            lambda seconds: self.messages.set_node_state(
                shutting_down=shutting_down, timeout=seconds
            ),
            self._pacing(timeout),
        )

    def watch(self, from_revision: int = 0) -> Generator[AssignmentEvent]:
        """What is admitted now, a Synced, then every change, without end.

        An interrupted watch is resumed after the last revision seen. Where the service no longer
        has that history, the picture comes again from the beginning, and pods that are gone are
        reported as Released before its Synced. Events of kinds that this version does not know
        are left out.
        """
        from numalign_client.answers import assignment_event

        for message in self.messages.watch_assignments(from_revision, sleep=self._sleep):
            event = assignment_event(message)
            if event is not None:
                yield event

    def _again(self, call: Callable[[float | None], T], pacing: Pacing) -> T:
        while True:
            try:
                return call(pacing.remaining())
            except ServiceUnavailable as error:
                pause = pacing.pause(error)
            self._sleep(pause)

    def _pacing(self, timeout: float | None) -> Pacing:
        return Pacing(self._retry, self._timeout if timeout is None else timeout)
