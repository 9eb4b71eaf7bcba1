"""Calls of a Topology Manager to a provider on the SDK, as tests make them."""

from __future__ import annotations

from typing import Any

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign.v1.hint_provider_pb2_grpc import (
    HintProviderStub,
)

grpc_max_workers = 4
"""For pytest-grpc: a watch holds a worker of its own."""


class Calls:
    """The calls of one admission after the other."""

    def __init__(self, stub: HintProviderStub) -> None:
        self.stub = stub

    def hints(self, admission: str, pod: core_pb2.Pod, container: str = "c0") -> Any:
        return self.stub.GetTopologyHints(
            hp.GetTopologyHintsRequest(
                admission_id=admission, pod=pod.SerializeToString(), container=container
            )
        )

    def allocate(
        self,
        admission: str,
        pod: core_pb2.Pod,
        container: str = "c0",
        *,
        mask: int | None = 1,
        last: bool = True,
        dry_run: bool = False,
    ) -> hp.AllocateResponse:
        return self.stub.Allocate(
            hp.AllocateRequest(
                admission_id=admission,
                pod=pod.SerializeToString(),
                container=container,
                affinity=pb.Hint(mask=mask, preferred=True),
                last=last,
                dry_run=dry_run,
            )
        )

    def admit(self, admission: str, pod: core_pb2.Pod, mask: int = 1) -> None:
        response = self.allocate(admission, pod, mask=mask)
        assert not response.HasField("failure"), response
        self.stub.Commit(hp.CommitRequest(admission_id=admission))

    def reconcile(
        self, active: tuple[str, ...], committed: tuple[str, ...] = (), *, ready: bool = True
    ) -> hp.HintProviderReconcileResponse:
        return self.stub.Reconcile(
            hp.HintProviderReconcileRequest(
                active_pods=[hp.ActivePod(pod_uid=uid) for uid in active],
                committed_admission_ids=committed,
                sources_ready=ready,
            )
        )


def ids(response: Any) -> dict[str, list[str]]:
    """Device ids by container."""
    return {h.container: list(h.devices[0].ids) for h in response.allocations}
