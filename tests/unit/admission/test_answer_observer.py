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
