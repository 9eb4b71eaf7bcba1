"""What a provider does when it is told the Topology Manager's picture, and what it answers.

Separate from the servicer, which translates one call at a time: here several steps over the
same books belong together.
"""

from __future__ import annotations

from typing import TypeVar

from numalign.model.ids import AdmissionId, PodUid
from numalign.provider.engine import Lost
from numalign.provider.ledger import Ledger
from numalign.provider.messages import (
    holding_to_message,
    lost_to_message,
    pod_holding_to_message,
    recorded_from_message,
)
from numalign.provider.pod_cache import PodCache
from numalign.telemetry.logs import get_logger
from numalign.v1 import hint_provider_pb2 as hp

S = TypeVar("S")

_log = get_logger("provider")


async def reconciled(
    ledger: Ledger[S], pods: PodCache, request: hp.HintProviderReconcileRequest
) -> hp.HintProviderReconcileResponse:
    """Take the picture over, give back what is recorded, and say what is held now.

    The instance id is filled in by the servicer. What cannot be given back is logged once.
    """
    active = {PodUid(pod.pod_uid): frozenset(pod.containers) for pod in request.active_pods}
    released = await ledger.reconcile(
        active,
        frozenset(AdmissionId(i) for i in request.committed_admission_ids),
        ready=request.sources_ready,
        running=frozenset(
            (PodUid(c.pod_uid), c.container_name) for c in request.running_containers
        ),
        record_lost=request.record_lost,
    )
    lost = await _given_back(ledger, pods, request)
    unknown = active.keys() - ledger.engine.pods(ledger.state)
    return hp.HintProviderReconcileResponse(
        released_pod_uids=released,
        unknown_pod_uids=sorted(unknown),
        holdings=_holdings(ledger) if request.with_holdings else None,
        lost=lost,
    )


async def _given_back(
    ledger: Ledger[S], pods: PodCache, request: hp.HintProviderReconcileRequest
) -> list[hp.LostAllocation]:
    if not request.recorded_pods:
        return []
    lost = await ledger.restore(
        recorded_from_message(each, pods.decode(each.pod) if each.pod else None)
        for each in request.recorded_pods
    )
    reports = [_report(uid, each) for uid, each in lost]
    for report in dict.fromkeys(reports):
        if report not in ledger.reports:
            _log.warning(report, provider=ledger.engine.name)
    ledger.note(reports)
    return [lost_to_message(uid, each) for uid, each in lost]


def _holdings(ledger: Ledger[S]) -> hp.PodHoldings:
    engine, state = ledger.engine, ledger.state
    return hp.PodHoldings(
        pods=[
            hp.PodHolding(
                pod_uid=pod_uid,
                allocations=[holding_to_message(h) for h in engine.holdings(state, pod_uid)],
                pod_allocation=pod_holding_to_message(engine.pod_holding(state, pod_uid)),
            )
            for pod_uid in sorted(engine.pods(state))
        ]
    )


def _report(uid: PodUid, lost: Lost) -> str:
    container = f", container {lost.container}" if lost.container else ""
    return f"pod {uid}{container}: {lost.message}"
