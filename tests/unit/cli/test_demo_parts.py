"""The pure parts of the demonstration: its steps, and the tree of a trace."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as otlp
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2
from tests.unit.cli.rendering import text_of

from numalign.cli.demo.receiver import records_of
from numalign.cli.demo.spans import Kind, SpanRecord, is_complete, trace_tree
from numalign.cli.demo.steps import STEPS, TRACED, pod_of, remark_of, sample_text, surprises
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


def span(span_id: str, parent: str, service: str, kind: Kind, start: int, end: int) -> SpanRecord:
    return SpanRecord(
        span_id=span_id,
        parent_id=parent,
        service=f"numalign-{service}",
        name=f"numalign.v1.Service/{span_id}",
        kind=kind,
        start=start * 1_000_000,
        end=end * 1_000_000,
    )


SPANS = (
    span("Allocate", "c2", "cpu", Kind.SERVER, 6, 8),
    span("c1", "Admit", "topology", Kind.CLIENT, 1, 4),
    span("Hints", "c1", "cpu", Kind.SERVER, 2, 3),
    span("Admit", "root", "topology", Kind.SERVER, 0, 10),
    span("merge", "Admit", "topology", Kind.INNER, 4, 5),
    span("c2", "Admit", "topology", Kind.CLIENT, 5, 9),
)


def test_both_sides_of_a_call_share_a_line() -> None:
    assert text_of([trace_tree("agent", SPANS, "root")]) == (
        "agent\n"
        "└── topology  Service/Admit  10.00 ms\n"
        "    ├── cpu       Service/Hints  3.00 ms, of which 1.00 ms there\n"
        "    ├── topology  Service/merge  1.00 ms\n"
        "    └── cpu       Service/Allocate  4.00 ms, of which 2.00 ms there"
    )


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        pytest.param(SPANS, True, id="all"),
        pytest.param((), False, id="none"),
        pytest.param(SPANS[1:], False, id="an-answer-is-missing"),
        pytest.param(tuple(s for s in SPANS if s.span_id != "c1"), False, id="a-parent-is-missing"),
        pytest.param((replace(SPANS[3], parent_id="x"),), False, id="the-root-is-another"),
    ],
)
def test_completeness(spans: tuple[SpanRecord, ...], expected: bool) -> None:
    assert is_complete(spans, "root") is expected


def test_spans_of_a_batch() -> None:
    request = otlp.ExportTraceServiceRequest(
        resource_spans=[
            trace_pb2.ResourceSpans(
                resource=resource_pb2.Resource(
                    attributes=[
                        common_pb2.KeyValue(
                            key="service.name",
                            value=common_pb2.AnyValue(string_value="numalign-cpu"),
                        )
                    ]
                ),
                scope_spans=[
                    trace_pb2.ScopeSpans(
                        spans=[
                            trace_pb2.Span(
                                trace_id=b"\x01" * 16,
                                span_id=b"\x02" * 8,
                                parent_span_id=b"\x03" * 8,
                                name="n",
                                kind=trace_pb2.Span.SPAN_KIND_SERVER,
                                start_time_unix_nano=5,
                                end_time_unix_nano=9,
                            )
                        ]
                    )
                ],
            )
        ]
    )

    assert records_of(request) == [
        (
            "01" * 16,
            SpanRecord(
                span_id="02" * 8,
                parent_id="03" * 8,
                service="numalign-cpu",
                name="n",
                kind=Kind.SERVER,
                start=5,
                end=9,
            ),
        )
    ]


@pytest.mark.parametrize("step", [pytest.param(step, id=step.sample) for step in STEPS])
def test_every_sample_is_one_pod_with_a_remark(step: object) -> None:
    sample = getattr(step, "sample")  # noqa: B009 - typed as object for the parameter table
    text = sample_text(sample)

    assert remark_of(text).endswith(".")
    assert pod_of(text).metadata.name == sample[3:].removesuffix(".yaml")


def test_no_sample_is_forgotten() -> None:
    directory = files("numalign.cli.demo").joinpath("samples")

    assert sorted(file.name for file in directory.iterdir()) == [step.sample for step in STEPS]
    assert TRACED in {step.sample for step in STEPS}


def test_surprises() -> None:
    step = STEPS[0]
    right = ad.AdmitResponse(
        verdict=pb.VERDICT_ADMITTED,
        allocations=[pb.ContainerAllocation(container="postgres", cpus="1-2,9-10")],
    )
    wrong = ad.AdmitResponse(verdict=pb.VERDICT_REJECTED, reason="X", dry_run=True)

    assert surprises(step, right) == []
    assert len(surprises(step, wrong)) == 4
