"""The trace of a stream of pods: what was done for which of them, and how each ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.process.observed_world import pod, settings
from tests.unit.telemetry.otlp import Receiver, attributes

from numalign.config.settings import Service
from numalign.process.node import Node
from numalign.rpc.channel import spans_ended
from numalign.telemetry.tracing import start_tracing, stop_tracing, use_tracer
from numalign.v1 import admission_pb2 as ad
from numalign.v1.admission_pb2_grpc import AdmissionStub


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with Receiver() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        yield running
    use_tracer(None)


async def test_each_pod_of_a_stream_has_its_spans(tmp_path: Path, receiver: Receiver) -> None:
    assert start_tracing("numalign-all", os.environ)
    try:
        node = await Node.open(settings(tmp_path, metrics={}))
        stub = AdmissionStub(node.channel(Service.ADMISSION))
        items = [ad.AdmitPodsRequest(admit=ad.AdmitRequest(pod=pod(name))) for name in "ab"]
        answers = [answer async for answer in stub.AdmitPods(iter(items))]
        await node.close()
        await spans_ended()
    finally:
        stop_tracing()

    assert len(answers) == 2
    spans = receiver.spans()
    for uid in ("uid-a", "uid-b"):
        (admit,) = _about(spans, "admit pod", uid)
        (settled,) = _about(spans, "pod settled", uid)
        assert attributes(settled)["numalign.verdict"] in {"admitted", "rejected"}
        assert admit.trace_id == settled.trace_id
        hints = _about(spans, "numalign.v1.HintProvider/GetTopologyHints", uid)
        assert len(hints) == 3
        assert all(admit.span_id in _above(spans, each) for each in hints)


async def test_without_a_tracer_nothing_is_worked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worked_out(*_: object) -> None:
        raise AssertionError("an attribute of a span that nobody records")

    monkeypatch.setattr("numalign.telemetry.attributes.pod_attributes", worked_out)
    node = await Node.open(settings(tmp_path, metrics={}))
    stub = AdmissionStub(node.channel(Service.ADMISSION))
    items = [ad.AdmitPodsRequest(admit=ad.AdmitRequest(pod=pod("a")))]
    (answer,) = [answer async for answer in stub.AdmitPods(iter(items))]
    await node.close()

    assert answer.HasField("decision")


def _about(spans: list[Any], name: str, uid: str) -> list[Any]:
    return [s for s in spans if s.name == name and attributes(s).get("k8s.pod.uid") == uid]


def _above(spans: list[Any], span: Any) -> set[bytes]:
    """The ids of the spans from a span's parent to the root."""
    by_id = {s.span_id: s for s in spans}
    found = set()
    while (span := by_id.get(span.parent_span_id)) is not None:
        found.add(span.span_id)
    return found
