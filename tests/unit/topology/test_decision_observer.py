"""What one decision adds to the counters of the Topology Manager (TM-53) and to ours."""

from __future__ import annotations

import pytest
from tests.unit.process.observed_world import samples

from numalign.model.hint import NO_HINT
from numalign.model.ids import PodUid
from numalign.model.pod import Pod
from numalign.telemetry import kubelet_metrics, own_metrics
from numalign.telemetry.metrics import Metrics
from numalign.topology.decision import AdmitCall, Decision
from numalign.topology.observer import DecisionObserver
from numalign.topology.scope import AdmissionCounts, MergeRecord, ScopeResult
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

REQUESTS = "kubelet_topology_manager_admission_requests_total"
ERRORS = "kubelet_topology_manager_admission_errors_total"
MILLISECONDS = "kubelet_topology_manager_admission_duration_ms"
ALIGNED = "kubelet_container_aligned_compute_resources_count{boundary=numa_node,scope=pod}"
MISALIGNED = (
    "kubelet_container_aligned_compute_resources_failure_count{boundary=numa_node,scope=pod}"
)
DEPTH = "numalign_admission_queue_depth"
SPECS = (
    *kubelet_metrics.TOPOLOGY,
    *kubelet_metrics.alignment(numa=True, static_cpu=False),
    *own_metrics.DECISIONS,
)


def admissions(verdict: str, reason: str = "") -> str:
    return f"numalign_admissions_total{{reason={reason},verdict={verdict}}}"


def told(
    response: ad.AdmitResponse, result: ScopeResult | None, *, dry_run: bool = False
) -> dict[str, float]:
    """Counters that are not zero, without buckets and sums, after a decision in 2.9 ms."""
    metrics = Metrics(SPECS, enabled=True)
    observer = DecisionObserver(metrics, "pod", lambda: 3)
    call = AdmitCall(
        data=b"",
        pod=Pod(uid=PodUid("u")),
        owner="o",
        dry_run=dry_run,
        explain=pb.EXPLAIN_LEVEL_NONE,
    )
    observer.asked(call)
    observer.decided(call, Decision(response=response, waited=0.0, result=result), 0.0029)
    page = samples(metrics.text())
    return {n: v for n, v in page.items() if v and "_bucket" not in n and "_created" not in n}


@pytest.mark.parametrize(
    ("response", "result", "expected"),
    [
        pytest.param(
            ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED),
            ScopeResult(admitted=True, counts=AdmissionCounts(aligned=1)),
            {ALIGNED: 1, admissions("admitted"): 1},
            id="admitted",
        ),
        pytest.param(
            ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED),
            ScopeResult(
                admitted=True,
                merges=(
                    MergeRecord(
                        container="c", answers=(), best=NO_HINT, admitted=True, proved=False
                    ),
                    MergeRecord(container="d", answers=(), best=NO_HINT, admitted=True),
                ),
            ),
            {"numalign_merges_unproved_total": 1, admissions("admitted"): 1},
            id="not proved",
        ),
        pytest.param(
            ad.AdmitResponse(verdict=pb.VERDICT_REJECTED, reason="TopologyAffinityError"),
            ScopeResult(admitted=False, counts=AdmissionCounts(errors=1, not_aligned=1)),
            {ERRORS: 1, MISALIGNED: 1, admissions("rejected", "TopologyAffinityError"): 1},
            id="not aligned",
        ),
        pytest.param(
            ad.AdmitResponse(verdict=pb.VERDICT_REJECTED, reason="of a third party"),
            ScopeResult(admitted=False, counts=AdmissionCounts(errors=1)),
            {ERRORS: 1, admissions("rejected", "Other"): 1},
            id="a reason that nobody knows",
        ),
        pytest.param(
            ad.AdmitResponse(verdict=pb.VERDICT_DEFERRED, reason="UnexpectedAdmissionError"),
            ScopeResult(admitted=False),
            {admissions("deferred", "UnexpectedAdmissionError"): 1},
            id="not yet",
        ),
        pytest.param(
            ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED, already_admitted=True),
            None,
            {},
            id="answered from the record",
        ),
    ],
)
def test_counters(
    response: ad.AdmitResponse, result: ScopeResult | None, expected: dict[str, float]
) -> None:
    seconds = "numalign_admission_duration_seconds"
    found = {n: v for n, v in told(response, result).items() if not n.startswith(seconds)}
    always = {REQUESTS: 1, f"{MILLISECONDS}_count": 1, f"{MILLISECONDS}_sum": 2, DEPTH: 3}
    assert found == {**always, **expected}


def test_a_dry_run_counts_nothing() -> None:
    response = ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED, dry_run=True)
    assert told(response, ScopeResult(admitted=True), dry_run=True) == {DEPTH: 3}
