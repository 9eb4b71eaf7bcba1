"""The image, run as a manifest says, under a real container runtime: `make e2e-deploy`.

The tests go through the life of one deployment, in their order.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from grpc import aio
from tests.e2e.containerd import Containerd
from tests.e2e.deploy.as_written import (
    assert_all_end_when_told,
    assert_as_written,
    assert_probes_pass,
)
from tests.e2e.deploy.deployment import Deployment, deployed
from tests.e2e.deploy.impatient_rules import write_impatient_rules
from tests.e2e.deploy.network import POD
from tests.observability.browser import show
from tests.observability.prometheus import Prometheus, eventually, program, prometheus
from tests.unit.telemetry.otlp import Receiver, attributes

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1800)]

COLLECTOR = "overlays/collector"
"""As overlays/nri, with all sending spans."""

ALL, SHARED, EXCLUSIVE = "0-1", "0", "1"
CONFIG = ("--config", "/etc/numalign/config.yaml")
MANY = 8
"""Refusals: more than the rules put up with."""

BUILDERS = "cc gcc c++ g++ ld make pip pip3"
INSTALLED = """
import json
import re
from importlib.metadata import distributions
parts = [(re.sub("[-_.]+", "-", d.name).lower(), d.version) for d in distributions()]
print(json.dumps(parts))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def deployment(containerd: Containerd) -> AsyncIterator[Deployment]:
    """One for all tests."""
    program("prometheus")
    async with deployed(COLLECTOR, containerd) as running:
        yield running


@pytest.fixture(scope="module")
def watching(deployment: Deployment) -> Iterator[Prometheus]:
    """A Prometheus that scrapes every port named `metrics`, as the operator would have it."""
    ports = [
        port["containerPort"]
        for container in deployment.kubelet.spec["containers"]
        for port in container["ports"]
    ]
    rules = write_impatient_rules(deployment.directory / "impatient.rules.yaml")
    targets = [f"{POD}:{port}" for port in ports]
    with prometheus(deployment.directory / "prometheus", *targets, rules=rules) as found:
        # What is counted before it is looked at for the first time is no increase.
        eventually(lambda: found.value("count(up == 1)") == len(ports))
        yield found


async def test_the_image_has_what_it_needs_and_no_more(deployment: Deployment) -> None:
    async def inside(*command: str) -> str:
        return await deployment.kubelet.run_inside("admission", *command)

    bill = json.loads(await inside("cat", "/usr/share/doc/numalign/sbom.cdx.json"))
    listed = {(part["name"], part["version"]) for part in bill["components"]}
    own = bill["metadata"]["component"]
    installed = json.loads(await inside("python", "-c", INSTALLED))
    found = await inside("sh", "-c", f"for each in {BUILDERS}; do command -v $each; done; true")

    assert await inside("numalign", "--version") == f"numalign {own['version']}\n"
    assert await inside("numalign-agent", "--version") == f"numalign-agent {own['version']}\n"
    assert {tuple(part) for part in installed} - {("numalign", own["version"])} <= listed
    assert found == ""


async def test_every_container_is_what_its_manifest_says(deployment: Deployment) -> None:
    await assert_as_written(deployment.kubelet)


async def test_every_probe_is_passed(deployment: Deployment) -> None:
    """Those of the start were, or nothing would be here."""
    await assert_probes_pass(deployment.kubelet)


async def test_the_start_up_taint_is_gone(deployment: Deployment) -> None:
    await deployment.until_taint_is_gone()


async def test_a_pod_gets_a_cpu_for_itself(deployment: Deployment, watching: Prometheus) -> None:
    shared = await deployment.run_whole_pod("shared")
    pinned = await deployment.run_whole_pod("pinned", cpu=1)

    assert await deployment.cpus(pinned) == EXCLUSIVE
    assert await deployment.cpus(shared) == SHARED
    # numalign itself makes room as well.
    for name in deployment.kubelet.written:
        assert await deployment.cpus(deployment.kubelet.containers[name]) == SHARED, name


async def test_a_refusal_is_explained(deployment: Deployment, watching: Prometheus) -> None:
    """To who asked, and in the container to who looks at it."""
    with pytest.raises(aio.AioRpcError, match="UnexpectedAdmissionError: Allocate failed"):
        await deployment.run_pod("refused", cpu=1)
    explain = ("numalign", "explain", "default/refused", *CONFIG)
    said = json.loads(await deployment.kubelet.run_inside("admission", *explain, "-o", "json"))
    table = await deployment.kubelet.run_inside("admission", *explain)

    assert (said["name"], said["verdict"]) == ("refused", "VERDICT_REJECTED")
    assert said["reason"] == "UnexpectedAdmissionError"
    assert "requested=1, available=0" in table
    assert "cpu is held by default/pinned/app (1)" in " ".join(table.split())


async def test_refusals_are_counted_and_an_alert_fires(
    deployment: Deployment, watching: Prometheus
) -> None:
    rejected = 'sum(numalign_admissions_total{verdict="rejected"})'
    await asyncio.to_thread(eventually, lambda: watching.value(rejected) == 1)
    for number in range(MANY):
        with pytest.raises(aio.AioRpcError, match="UnexpectedAdmissionError"):
            await deployment.run_pod(f"refused-{number}", cpu=1)

    def look() -> None:
        eventually(lambda: watching.value(rejected) == 1 + MANY)
        assert watching.value('sum(numalign_admissions_total{verdict="admitted"})') == 3
        assert watching.value("min(numalign_provider_up)") == 1
        assert watching.value("numalign_agent_nri_connected") == 1
        assert watching.value("numalign_agent_node_ready") == 1
        fired = eventually(lambda: alert(watching, "NumalignRejectingPods"))
        assert fired["labels"]["reason"] == "UnexpectedAdmissionError"
        assert fired["labels"]["instance"] == f"{POD}:9464"
        assert "rejects pods: UnexpectedAdmissionError" in fired["annotations"]["summary"]
        rules = [rule for group in watching.get("rules")["groups"] for rule in group["rules"]]
        assert {rule["health"] for rule in rules} == {"ok"}

    await asyncio.to_thread(look)


async def test_a_service_that_ended(deployment: Deployment, watching: Prometheus) -> None:
    """An alert fires; who starts meanwhile is decided on once the kubelet has started it again."""
    await deployment.containerd.cri.stop(deployment.kubelet.containers["memory"], 30)
    down = await asyncio.to_thread(
        eventually, lambda: alert(watching, "NumalignProviderDown", provider="memory")
    )
    meanwhile = await deployment.run_whole_pod("meanwhile")
    undecided = deployment.pod("meanwhile").uid in await deployment.admitted()
    await deployment.kubelet.restart("memory")
    await asyncio.to_thread(
        eventually, lambda: not alert(watching, "NumalignProviderDown", provider="memory")
    )
    await deployment.until_admitted({deployment.kubelet.uid, *(pod.uid for pod in deployment.pods)})

    assert down["annotations"]["summary"].startswith("Hint provider memory on ")
    assert not undecided
    assert await deployment.cpus(meanwhile) == SHARED


async def test_a_trace_is_whole(deployment: Deployment) -> None:
    """From the runtime's event to every provider and back out to the disk, without a gap."""
    receiver = deployment.receiver
    assert receiver is not None
    spans = await asyncio.to_thread(eventually, lambda: whole_trace(receiver, "pinned"))
    said = [attributes(span) for span in spans]
    (merge,) = (attributes(span) for span in spans if span.name == "merge")
    verdicts = [each["numalign.verdict"] for each in said if "numalign.verdict" in each]
    services = {resource["service.name"] for resource in receiver.resources()}

    assert merge["numalign.affinity"] == "0"
    assert set(verdicts) == {"admitted"}
    assert {span.name for span in spans} >= {"store prepare", "store commit"}
    assert services == {
        f"numalign-{name}" for name in ("nri", "admission", "topology", "cpu", "memory", "device")
    }


async def test_the_report_shows_the_node(deployment: Deployment) -> None:
    page = deployment.directory / "node.html"
    text = await deployment.kubelet.run_inside(
        "admission", "numalign", "report", "-o", "-", *CONFIG
    )
    page.write_text(text, encoding="utf-8")
    shown = await asyncio.to_thread(show, page)
    node = " ".join(shown.dom.split())

    assert shown.complaints == ()
    assert sorted(re.findall(r'data-cpu="(\d+)"', shown.dom)) == ["0", "1"]
    assert re.findall(r'data-numa-node="(\d+)"', shown.dom) == ["0"]
    for pod in ("default/pinned", "default/shared", "numalign-system/numalign-1"):
        assert pod in node
    assert f"default/refused-{MANY - 1}" in node
    assert "not enough cpus available" in node


async def test_all_end_when_told(deployment: Deployment) -> None:
    await assert_all_end_when_told(deployment.kubelet)


def alert(watching: Prometheus, name: str, **labels: str) -> Any:
    """An alert that fires, None if it does not."""
    wanted = {"alertname": name, **labels}
    return next(
        (
            each
            for each in watching.get("alerts")["alerts"]
            if each["state"] == "firing" and wanted.items() <= each["labels"].items()
        ),
        None,
    )


def whole_trace(receiver: Receiver, pod: str) -> list[Any]:
    """All spans of a pod's start in the runtime; none as long as some are still to come."""
    spans = receiver.spans()
    begun = [
        span
        for span in spans
        if span.name == "nri RunPodSandbox"
        and not span.parent_span_id
        and attributes(span).get("k8s.pod.name") == pod
    ]
    found = [span for span in spans if begun and span.trace_id == begun[0].trace_id]
    known = {span.span_id for span in found}
    above = {span.parent_span_id for span in found if span is not begun[0]}
    provided = {
        (span.name.rpartition("/")[2], attributes(span).get("numalign.provider")) for span in found
    }
    wanted = {
        (method, provider)
        for method in ("GetTopologyHints", "Allocate")
        for provider in ("cpu", "memory", "device")
    }
    return found if above <= known and wanted <= provided else []
