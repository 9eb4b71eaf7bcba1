"""Which service publishes what, what the settings leave out, and the page that lists it."""

from __future__ import annotations

import asyncio
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.process.observed_world import samples, settings

from numalign.config.settings import Service
from numalign.process.metrics import (
    PUBLISHED,
    address_of,
    metrics_table,
    observe_commit,
    open_metrics,
    services_of,
    specs_of,
)
from numalign.process.node import Node
from numalign.telemetry.own_metrics import all_metrics

PAGE = Path(__file__).parents[3] / "docs" / "observability.md"


def test_the_documentation_lists_exactly_the_metrics_of_the_code() -> None:
    shown = PAGE.read_text().partition("<!-- metrics -->\n")[2].partition("<!-- /metrics -->")[0]
    assert shown.strip() == metrics_table().strip()


def test_every_metric_has_a_service_and_every_service_only_known_metrics() -> None:
    known = {spec.name for spec in all_metrics()}
    assert {spec.name for published in PUBLISHED.values() for spec in published} == known
    assert all(services_of(spec) for spec in all_metrics())


@pytest.mark.parametrize(
    ("service", "series"),
    [
        pytest.param(
            Service.TOPOLOGY,
            {("container", "numa_node"), ("pod", "numa_node")},
            id="topology",
        ),
        pytest.param(
            Service.CPU,
            {("container", "physical_cpu"), ("container", "uncore_cache")},
            id="cpu",
        ),
    ],
)
def test_each_service_starts_its_own_alignment_series(
    tmp_path: Path, service: Service, series: set[tuple[str, str]]
) -> None:
    specs = specs_of([service], settings(tmp_path))
    (aligned,) = [s for s in specs if s.name.endswith("aligned_compute_resources_count")]
    assert set(aligned.start) == series


@pytest.mark.parametrize("gate", [True, False])
def test_pod_level_counters_need_their_gate(tmp_path: Path, gate: bool) -> None:
    found = settings(tmp_path)
    found = replace(found, gates=replace(found.gates, pod_level_resource_managers=gate))
    names = {spec.name for spec in specs_of(Service, found)}
    assert ("resource_manager_allocations_total" in names) is gate


def test_an_address_for_each_service(tmp_path: Path) -> None:
    found = settings(
        tmp_path, metrics={"address": "127.0.0.1:1", "services": {"cpu": "127.0.0.1:2"}}
    )
    ports = {
        service: address.port for service in Service if (address := address_of(service, found))
    }
    assert ports == {**dict.fromkeys(Service, 1), Service.CPU: 2}
    everything = address_of(None, found)
    assert everything is not None
    assert everything.port == 1


def test_without_an_address_nobody_counts(tmp_path: Path) -> None:
    metrics = open_metrics(Service.CPU, settings(tmp_path, metrics={}))
    assert not metrics.enabled
    assert observe_commit(metrics) is None


async def test_the_page_is_served(tmp_path: Path) -> None:
    async with open_metrics(None, settings(tmp_path)) as metrics:
        port = metrics.serve("127.0.0.1", 0)
        url = f"http://127.0.0.1:{port}/metrics"
        with await asyncio.to_thread(urllib.request.urlopen, url, timeout=60) as response:
            page = samples(response.read().decode())
    assert page["kubelet_topology_manager_admission_requests_total"] == 0


async def test_a_provider_that_does_not_answer_is_shown(tmp_path: Path) -> None:
    absent = {"name": "absent", "endpoint": f"{tmp_path}/none.sock", "failurePolicy": "Ignore"}
    node = await Node.open(settings(tmp_path, providers=[absent]))
    try:
        await node.serving()
        async with asyncio.timeout(60):
            while samples(node.metrics.text())["numalign_provider_up{provider=absent}"]:  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0.01)
        assert samples(node.metrics.text())["numalign_provider_up{provider=cpu}"] == 1
    finally:
        await node.close()
