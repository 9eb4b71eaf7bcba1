"""The label of a rejection (ADM-12, TM-49), and which answers count."""

from __future__ import annotations

import pytest
from tests.unit.process.observed_world import samples

from numalign.admission.observer import AnswerObserver, reason_label
from numalign.telemetry.kubelet_metrics import ADMISSION
from numalign.telemetry.metrics import Metrics
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        ("TopologyAffinityError", "TopologyAffinityError"),
        ("UnexpectedAdmissionError", "UnexpectedAdmissionError"),
        ("SMTAlignmentError", "Other"),
        ("EmptyPodSharedPoolError", "Other"),
        ("OutOfcpu", "OutOfcpu"),
        ("OutOfexample.com/gpu", "OutOfExtendedResources"),
        ("", "Other"),
    ],
)
def test_reason_label(reason: str, label: str) -> None:
    assert reason_label(reason) == label


@pytest.mark.parametrize(
    ("request_", "verdict", "counted"),
    [
        pytest.param(ad.AdmitRequest(), pb.VERDICT_REJECTED, 1, id="rejected"),
        pytest.param(ad.AdmitRequest(), pb.VERDICT_ADMITTED, 0, id="admitted"),
        pytest.param(ad.AdmitRequest(), pb.VERDICT_DEFERRED, 0, id="deferred"),
        pytest.param(ad.AdmitRequest(dry_run=True), pb.VERDICT_REJECTED, 0, id="dry run"),
        pytest.param(
            ad.AdmitRequest(operation=pb.OPERATION_RESIZE), pb.VERDICT_REJECTED, 0, id="resize"
        ),
    ],
)
def test_what_counts(
    request_: ad.AdmitRequest, verdict: pb.Verdict.ValueType, counted: int
) -> None:
    metrics = Metrics(ADMISSION, enabled=True)
    observer = AnswerObserver(metrics)
    observer.asked(request_)
    observer.answered(request_, ad.AdmitResponse(verdict=verdict, reason="Evicted"))
    page = samples(metrics.text())
    assert sum(v for n, v in page.items() if n.startswith("kubelet_admission_rej")) == counted


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        pytest.param("InPlacePodVerticalScaling is disabled", "feature_gate_off", id="gate"),
        pytest.param(
            "In-place resize of containers with swap is not supported.",
            "swap_limitation",
            id="swap",
        ),
        pytest.param(
            'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
            "guaranteed_pod_cpu_manager_static_policy",
            id="cpus",
        ),
        pytest.param(
            'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
            "guaranteed_pod_memory_manager_static_policy",
            id="memory",
        ),
        pytest.param("somebody else's", "other", id="other"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_infeasible_resizes_count_by_their_case(message: str, detail: str, dry_run: bool) -> None:
    """RSZ-6, CPU-88."""
    metrics = Metrics(ADMISSION, enabled=True)
    request = ad.AdmitRequest(operation=pb.OPERATION_RESIZE, dry_run=dry_run)
    response = ad.AdmitResponse(verdict=pb.VERDICT_REJECTED, reason="Infeasible", message=message)
    AnswerObserver(metrics).answered(request, response)

    counted = samples(metrics.text()).get(
        f"kubelet_pod_infeasible_resizes_total{{reason_detail={detail}}}", 0
    )
    assert counted == (0 if dry_run else 1)


def test_deferred_resizes_do_not_count() -> None:
    metrics = Metrics(ADMISSION, enabled=True)
    request = ad.AdmitRequest(operation=pb.OPERATION_RESIZE)
    response = ad.AdmitResponse(verdict=pb.VERDICT_DEFERRED, reason="Deferred")
    AnswerObserver(metrics).answered(request, response)

    assert not any("resizes" in name for name in samples(metrics.text()))
