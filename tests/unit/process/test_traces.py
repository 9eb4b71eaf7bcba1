"""One trace for each Admit, through every hop, in one process and in five."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.world import WAIT_SECONDS, World
from tests.unit.process.observed_world import pod, settings, write
from tests.unit.telemetry.otlp import Receiver, attributes

from numalign.config.settings import CORE_SERVICES, Service
from numalign.process.node import Node
from numalign.rpc.channel import spans_ended
from numalign.telemetry.tracing import active_tracer, start_tracing, stop_tracing, use_tracer
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub

ADMIT = "numalign.v1.TopologyManager/Admit"
PROVIDERS = {"device", "cpu", "memory"}
SERVER, CLIENT, INNER = 2, 3, 1


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with Receiver() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        yield running
    use_tracer(None)


class Trace:
    """The spans of the one trace in which pod `a` was decided on."""

    def __init__(self, spans: list[Any]) -> None:
        about = {"k8s.pod.uid": "uid-a"}.items()
        (admit,) = [
            s
            for s in spans
            if s.name == ADMIT
            and s.kind == SERVER
            and "numalign.verdict" in attributes(s)
            and about <= attributes(s).items()
        ]
        self.admit = admit
        self.spans = [s for s in spans if s.trace_id == admit.trace_id]
        self.by_id = {s.span_id: s for s in self.spans}

    def roots(self) -> list[str]:
        return [s.name for s in self.spans if s.parent_span_id not in self.by_id]

    def servers(self, method: str) -> list[Any]:
        name = f"numalign.v1.HintProvider/{method}"
        return [s for s in self.spans if s.name == name and s.kind == SERVER]

    def parents(self, name: str) -> list[str]:
        """Names from the parent of the first such span up to the root."""
        found = []
        span = next(s for s in self.spans if s.name == name)
        while (span := self.by_id.get(span.parent_span_id)) is not None:
            found.append(span.name.rpartition("/")[2])
        return found


def check(trace: Trace) -> None:
    """Everything that a trace of one admitted pod must show."""
    assert len(trace.roots()) == 1
    about = {
        "k8s.pod.uid": "uid-a",
        "k8s.namespace.name": "default",
        "k8s.pod.name": "a",
    }
    decided = attributes(trace.admit)
    assert about.items() <= decided.items()
    assert decided["numalign.verdict"] == "admitted"
    assert decided["numalign.reason"] == ""
    assert decided["numalign.affinity"] == "c=0"
    assert decided["numalign.queue_wait_ms"] >= 0
    for method in ("GetTopologyHints", "Allocate"):
        seen = [attributes(span) for span in trace.servers(method)]
        assert {one["numalign.provider"] for one in seen} == PROVIDERS
        for one in seen:
            assert about.items() <= one.items()
            assert one["k8s.container.name"] == "c"
            assert one["numalign.admission_id"] == decided["numalign.admission_id"]
    for span in trace.servers("Allocate"):
        assert attributes(span)["numalign.affinity"] == "0"
        assert attributes(span)["numalign.affinity.preferred"] is True
    (merge,) = [s for s in trace.spans if s.name == "merge"]
    assert merge.kind == INNER
    assert attributes(merge)["numalign.affinity"] == "0"
    assert attributes(merge)["numalign.policy.admitted"] is True
    assert "cpu=0*|1*|0,1" in attributes(merge)["numalign.hints"].split()
    above = trace.parents("merge")
    assert above[:2] == ["Admit", "Admit"]
    assert trace.parents("store commit")[:2] == ["Admit", "Admit"]
    prepare = trace.parents("store prepare")
    assert prepare[0] in {"Allocate", "Seal"}
    assert prepare[2:4] == ["Admit", "Admit"]


async def test_one_process(tmp_path: Path, receiver: Receiver) -> None:
    assert start_tracing("numalign-all", os.environ)
    try:
        node = await Node.open(settings(tmp_path, metrics={}))
        admission = AdmissionStub(node.channel(Service.ADMISSION))
        await admission.Admit(ad.AdmitRequest(pod=pod("a")))
        await node.close()
        await spans_ended()
    finally:
        stop_tracing()
    check(Trace(receiver.spans()))


async def test_a_refusal_says_why(tmp_path: Path, receiver: Receiver) -> None:
    assert start_tracing("numalign-all", os.environ)
    try:
        node = await Node.open(settings(tmp_path, metrics={}))
        admission = AdmissionStub(node.channel(Service.ADMISSION))
        await admission.Admit(ad.AdmitRequest(pod=pod("a", cpu="12"), dry_run=True))
        await node.close()
        await spans_ended()
    finally:
        stop_tracing()
    decided = attributes(Trace(receiver.spans()).admit)
    assert decided["numalign.verdict"] == "rejected"
    assert decided["numalign.reason"] == "TopologyAffinityError"
    assert decided["numalign.dry_run"] is True


async def test_without_the_variables_there_is_no_tracer(tmp_path: Path) -> None:
    assert not start_tracing("numalign-all", {})
    assert active_tracer() is None


async def test_without_a_tracer_nothing_is_worked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worked_out(*_: object) -> None:
        raise AssertionError("an attribute of a span that nobody records")

    for name in ("pod_attributes", "affinity_attributes", "affinity_text"):
        monkeypatch.setattr(f"numalign.telemetry.attributes.{name}", worked_out)
    node = await Node.open(settings(tmp_path, metrics={}))
    admission = AdmissionStub(node.channel(Service.ADMISSION))
    response = await admission.Admit(ad.AdmitRequest(pod=pod("a")))
    await node.close()
    assert response.verdict == pb.VERDICT_ADMITTED


@pytest.mark.processes
@pytest.mark.parametrize("earlier", [0, 3], ids=["call by call", "over streams"])
async def test_five_processes(receiver: Receiver, earlier: int) -> None:
    with tempfile.TemporaryDirectory(prefix="na-") as name:
        world = World(Path(name), together=False, seed=0)
        write(Path(name))
        try:
            await world.start()
            # Before they have all met, a call may be answered without a decision.
            await world.ready()
            for number in range(earlier):
                probe = ad.AdmitRequest(pod=pod(f"earlier-{number}"), dry_run=True)
                await world.admission.Admit(probe, timeout=WAIT_SECONDS)
            await world.admission.Admit(ad.AdmitRequest(pod=pod("a")), timeout=WAIT_SECONDS)
            # Spans are sent at the latest by a process that stops.
            await asyncio.gather(*(world.stop(process) for process in world.processes))
        finally:
            await world.close()
    check(Trace(receiver.spans()))
    names = {resource["service.name"] for resource in receiver.resources()}
    assert names == {f"numalign-{service.value}" for service in CORE_SERVICES}
