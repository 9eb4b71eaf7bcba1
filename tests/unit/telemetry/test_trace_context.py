"""Reading and passing on W3C trace context."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.telemetry.trace_context import TraceContext, trace_of

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param((), None, id="none"),
        pytest.param((("tracestate", "a=1"),), None, id="state-alone"),
        pytest.param((("traceparent", PARENT),), TraceContext(PARENT), id="parent"),
        pytest.param(
            (("tracestate", "a=1"), ("x", "y"), ("traceparent", PARENT), ("tracestate", "b=2")),
            TraceContext(PARENT, "a=1,b=2"),
            id="states-are-joined",
        ),
        pytest.param((("traceparent", PARENT.encode()),), None, id="bytes"),
        pytest.param((("traceparent", PARENT.upper()),), None, id="upper-case"),
        pytest.param((("traceparent", PARENT[:-1]),), None, id="short"),
        pytest.param((("traceparent", PARENT + "-x"),), None, id="long-in-version-0"),
        pytest.param((("traceparent", f"ff{PARENT[2:]}"),), None, id="version-ff"),
        pytest.param((("traceparent", f"00-{'0' * 32}-{SPAN}-01"),), None, id="no-trace-id"),
        pytest.param((("traceparent", f"00-{TRACE}-{'0' * 16}-01"),), None, id="no-span-id"),
        pytest.param(
            (("traceparent", f"cc{PARENT[2:]}-what-comes"),),
            TraceContext(f"cc{PARENT[2:]}-what-comes"),
            id="a-later-version",
        ),
        pytest.param((("traceparent", f"cc{PARENT[2:]}x"),), None, id="a-later-version-torn"),
    ],
)
def test_trace_of(
    metadata: tuple[tuple[str, str | bytes], ...], expected: TraceContext | None
) -> None:
    assert trace_of(metadata) == expected


def test_what_is_sent() -> None:
    assert TraceContext(PARENT).metadata() == (("traceparent", PARENT),)
    assert TraceContext(PARENT, "a=1").metadata() == (
        ("traceparent", PARENT),
        ("tracestate", "a=1"),
    )
    assert TraceContext(PARENT).trace_id == TRACE


@given(st.text(max_size=80))
def test_any_text_is_either_valid_or_nothing(text: str) -> None:
    found = trace_of((("traceparent", text),))
    assert found is None or trace_of(found.metadata()) == found
