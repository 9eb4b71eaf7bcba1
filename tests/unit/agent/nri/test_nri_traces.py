"""One trace from an event of the runtime through Admission to the providers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from tests.unit.agent.nri.fake_runtime import Connection, fake_runtime
from tests.unit.agent.nri.made_up import container_message, pod_message
from tests.unit.agent.traced import (
    CLIENT,
    INNER,
    SECONDS,
    SERVER,
    Spans,
    lines,
    manifest,
    node,
    received,
)
from tests.unit.telemetry.otlp import Receiver, attributes

from numalign.kube.nri.v1alpha1 import api_pb2 as nri

PROGRAM = Path(sys.executable).parent / "numalign-agent"
HASH = "0123456789abcdef"
PROVIDERS = {"device", "cpu", "memory"}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with Receiver() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(SECONDS))
        yield running


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short, for sockets."""
    with tempfile.TemporaryDirectory(prefix="nri-", dir="/tmp") as name:
        yield Path(name)


def plugin_config(directory: Path) -> Path:
    path = directory / "nri.yaml"
    document = {
        "staticPodPath": str(directory / "manifests"),
        "numalign": {
            "runtimeDirectory": str(directory / "run"),
            "stateDirectory": str(directory / "plugin"),
            "hostRoot": str(directory / "host"),
            "agent": {
                "nodeName": "n1",
                # On a busy machine an answer may take longer than a runtime waits.
                "nri": {"socket": str(directory / "nri.sock"), "requestTimeout": f"{SECONDS}s"},
            },
        },
    }
    path.write_text(yaml.safe_dump(document))
    return path


@asynccontextmanager
async def plugin(directory: Path) -> AsyncIterator[Connection]:
    """The plugin as a process, connected to a runtime, and stopped by a signal."""
    async with fake_runtime(directory / "nri.sock") as runtime:
        with (directory / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                PROGRAM, "nri", "--config", plugin_config(directory), stderr=log
            )
        try:
            async with asyncio.timeout(SECONDS):
                yield await runtime.plugins.get()
        finally:
            process.terminate()
            assert await asyncio.wait_for(process.wait(), SECONDS) == 0


def static_pod(name: str) -> nri.PodSandbox:
    pod = pod_message(f"{name}-n1", {"kubernetes.io/config.hash": HASH})
    pod.uid = HASH
    return pod


def static_container(name: str) -> nri.Container:
    return container_message(f"{name}-n1")


ABOUT = {"k8s.pod.uid": HASH, "k8s.namespace.name": "default", "k8s.pod.name": "web-n1"}


@pytest.mark.processes
async def test_one_trace_from_the_runtime_to_the_providers(
    directory: Path, receiver: Receiver
) -> None:
    manifest(directory, "web", "2")
    pod, container = static_pod("web"), static_container("web")
    async with node(directory), plugin(directory) as runtime:
        await runtime.call(
            "RunPodSandbox",
            nri.RunPodSandboxRequest(pod=pod),
            nri.RunPodSandboxResponse,
            seconds=SECONDS,
        )
        create = nri.CreateContainerRequest(pod=pod, container=container)
        await runtime.call("CreateContainer", create, nri.CreateContainerResponse, seconds=SECONDS)
        await received(receiver, "numalign.v1.Admission/AddContainer")
    spans = Spans(receiver)
    run, created = spans.one("nri RunPodSandbox"), spans.one("nri CreateContainer")

    assert not run.parent_span_id
    assert run.kind == INNER
    assert attributes(run) == {**ABOUT, "numalign.verdict": "admitted", "numalign.reason": ""}
    allocated = [
        span
        for span in spans.below(run)
        if span.name == "numalign.v1.HintProvider/Allocate" and span.kind == SERVER
    ]
    assert {attributes(span)["numalign.provider"] for span in allocated} == PROVIDERS
    for span in allocated:
        above = spans.above(span)
        assert above[-1] == "nri RunPodSandbox"
        assert above[-3:-1] == ["numalign.v1.Admission/Admit"] * 2
    assert not created.parent_span_id
    assert attributes(created) == {**ABOUT, "k8s.container.name": "app"}
    called = {span.name for span in spans.below(created) if span.kind == CLIENT}
    assert {
        "numalign.v1.Admission/PrepareContainer",
        "numalign.v1.Admission/AddContainer",
    } <= called
    names = {resource["service.name"] for resource in receiver.resources()}
    assert names == {"numalign-nri", "numalign-all"}
    (admitted,) = lines(directory / "log", "pod admitted")
    assert admitted["trace_id"] == run.trace_id.hex()
    (placed,) = lines(directory / "log", "container placed")
    assert placed["trace_id"] == created.trace_id.hex()


@pytest.mark.processes
async def test_a_pod_that_must_not_start_is_an_answer_and_no_failure(
    directory: Path, receiver: Receiver
) -> None:
    manifest(directory, "web", "12")
    async with node(directory), plugin(directory) as runtime:
        with pytest.raises(RuntimeError, match="TopologyAffinityError"):
            await runtime.call(
                "RunPodSandbox",
                nri.RunPodSandboxRequest(pod=static_pod("web")),
                nri.RunPodSandboxResponse,
                seconds=SECONDS,
            )
    run = Spans(receiver).one("nri RunPodSandbox")

    assert attributes(run)["numalign.verdict"] == "rejected"
    assert attributes(run)["numalign.reason"] == "TopologyAffinityError"
    assert run.status.code == 0


@pytest.mark.processes
def test_without_the_variables_nothing_of_opentelemetry_is_imported() -> None:
    code = (
        "import os, sys\n"
        "import numalign_agent.nri.serving, numalign_agent.process\n"
        "from numalign.telemetry.tracing import start_tracing\n"
        "from numalign_agent.spans import annotate_decision, pod_span\n"
        "assert not start_tracing('numalign-nri', os.environ)\n"
        "with pod_span('nri RunPodSandbox', 'u', 'default', 'web'): annotate_decision('admitted')\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
