"""Traces of the agent: one from a pod's admission, one from the start of each container."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from tests.unit.agent.traced import SECONDS, SERVER, Spans, lines, manifest, node, received
from tests.unit.telemetry.otlp import Receiver, attributes

PROGRAM = Path(sys.executable).parent / "numalign-agent"
SERVICE = "numalign.v1.Admission"


async def run(directory: Path, receiver: Receiver) -> None:
    """Run an agent until its pod's container has started, and stop it by a signal."""
    config = directory / "agent.yaml"
    document = {
        "staticPodPath": str(directory / "manifests"),
        "numalign": {
            "runtimeDirectory": str(directory / "run"),
            "agent": {
                "nodeName": "n1",
                "stateDirectory": str(directory / "agent"),
                "runner": "recorder",
            },
        },
    }
    config.write_text(yaml.safe_dump(document))
    with (directory / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            PROGRAM, "run", "--config", config, stderr=log
        )
    try:
        await received(receiver, f"{SERVICE}/AddContainer")
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), SECONDS) == 0


@pytest.mark.processes
async def test_a_pod_and_its_container(monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as receiver, tempfile.TemporaryDirectory(prefix="na-", dir="/tmp") as name:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(SECONDS))
        directory = Path(name)
        manifest(directory, "web", "2")
        async with node(directory):
            await run(directory, receiver)
        spans = Spans(receiver)
        started = lines(directory / "log", "starting")
    admit, start = spans.one("admit pod"), spans.one("start container")

    assert started
    said = attributes(admit)
    assert said["k8s.pod.name"] == "web-n1"
    assert said["numalign.verdict"] == "admitted"
    (served,) = [
        span
        for span in spans.below(admit)
        if span.name == f"{SERVICE}/Admit" and span.kind == SERVER
    ]
    assert spans.above(served) == [f"{SERVICE}/Admit", "admit pod"]
    assert attributes(start)["k8s.pod.uid"] == said["k8s.pod.uid"]
    assert attributes(start)["k8s.container.name"] == "app"
    names = {span.name for span in spans.below(start) if span.kind == SERVER}
    assert {f"{SERVICE}/PrepareContainer", f"{SERVICE}/AddContainer"} <= names
    assert not start.parent_span_id
