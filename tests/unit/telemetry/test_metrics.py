"""Declared metrics, the page, and the HTTP server."""

from __future__ import annotations

import asyncio
import sys
import urllib.request
from itertools import pairwise

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from numalign.errors import ConfigError
from numalign.telemetry import kubelet_metrics as kubelet
from numalign.telemetry import own_metrics
from numalign.telemetry.metrics import Kind, Metrics, MetricSpec
from numalign.telemetry.trace_context import TraceContext, current_trace


def page(metrics: Metrics) -> dict[str, float]:
    """The samples of the page, as Prometheus reads them."""
    found = {}
    for family in text_string_to_metric_families(metrics.text()):
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_metrics_without_labels_are_there_from_the_start() -> None:
    samples = page(Metrics(kubelet.CPU, enabled=True))
    assert samples == {
        "kubelet_cpu_manager_pinning_requests_total": 0,
        "kubelet_cpu_manager_pinning_errors_total": 0,
        "kubelet_cpu_manager_shared_pool_size_millicores": 0,
        "kubelet_cpu_manager_exclusive_cpu_allocation_count": 0,
    }


ALIGNED = "kubelet_container_aligned_compute_resources_count"
FAILED = "kubelet_container_aligned_compute_resources_failure_count"


@pytest.mark.parametrize(
    ("numa", "static_cpu", "series"),
    [
        pytest.param(False, False, set(), id="none"),
        pytest.param(
            True,
            False,
            {
                f"{name}{{boundary=numa_node,scope={scope}}}"
                for name in (ALIGNED, FAILED)
                for scope in ("container", "pod")
            },
            id="topology-TM-53",
        ),
        pytest.param(
            False,
            True,
            {
                f"{ALIGNED}{{boundary=physical_cpu,scope=container}}",
                f"{ALIGNED}{{boundary=uncore_cache,scope=container}}",
                f"{FAILED}{{boundary=physical_cpu,scope=container}}",
            },
            id="cpu-CPU-91",
        ),
    ],
)
def test_alignment_series_at_the_start(numa: bool, static_cpu: bool, series: set[str]) -> None:
    metrics = Metrics(kubelet.alignment(numa=numa, static_cpu=static_cpu), enabled=True)
    assert page(metrics) == dict.fromkeys(series, 0)


def test_a_counter_keeps_the_kubelets_name() -> None:
    metrics = Metrics(kubelet.alignment(numa=True, static_cpu=False), enabled=True)
    metrics.counter(ALIGNED).labels("pod", "numa_node").inc()
    metrics.counter(ALIGNED).labels("pod", "numa_node").inc(2)
    assert page(metrics)[f"{ALIGNED}{{boundary=numa_node,scope=pod}}"] == 3
    assert f"{ALIGNED}_total" not in metrics.text()


def test_counters_gauges_and_histograms_count() -> None:
    metrics = Metrics(own_metrics.all_metrics(), enabled=True)
    metrics.counter("numalign_admissions_total").labels("rejected", "OutOfcpu").inc()
    metrics.gauge("numalign_admission_queue_depth").set(3)
    metrics.gauge("numalign_admission_queue_depth").inc(-1)
    duration = metrics.histogram("numalign_admission_duration_seconds").labels("rejected")
    duration.observe(0.003)
    samples = page(metrics)
    assert samples["numalign_admissions_total{reason=OutOfcpu,verdict=rejected}"] == 1
    assert samples["numalign_admissions_total{reason=,verdict=admitted}"] == 0
    assert samples["numalign_admission_queue_depth"] == 2
    name = "numalign_admission_duration_seconds"
    assert samples[f"{name}_bucket{{le=0.002,verdict=rejected}}"] == 0
    assert samples[f"{name}_bucket{{le=0.005,verdict=rejected}}"] == 1
    assert samples[f"{name}_count{{verdict=admitted}}"] == 0


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        pytest.param(
            "kubelet_topology_manager_admission_duration_ms",
            [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6, 819.2],
            id="TM-53",
        ),
        pytest.param(
            "kubelet_device_plugin_alloc_duration_seconds",
            [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
            id="DEV-38",
        ),
    ],
)
def test_buckets(name: str, bounds: list[float]) -> None:
    (spec,) = [s for s in own_metrics.all_metrics() if s.name == name]
    assert spec.buckets == pytest.approx(bounds)


def test_buckets_of_dra() -> None:
    buckets = kubelet.DRA[0].buckets
    assert len(buckets) == 15
    assert buckets[0] == pytest.approx(0.1)
    assert buckets[-1] == pytest.approx(40)
    quotients = {round(b / a, 9) for a, b in pairwise(buckets)}
    assert len(quotients) == 1


def test_the_list_of_all_metrics() -> None:
    specs = own_metrics.all_metrics()
    names = [spec.name for spec in specs]
    assert names == sorted(set(names))
    assert {"kubelet_admission_rejections_total", "numalign_store_commit_seconds"} <= set(names)
    prefixes = ("kubelet_", "numalign_", "dra_", "resource_manager_")
    assert all(name.startswith(prefixes) for name in names)
    for spec in specs:
        assert bool(spec.buckets) is (spec.kind is Kind.HISTOGRAM)
        assert list(spec.buckets) == sorted(set(spec.buckets))
        assert all(len(values) == len(spec.labels) for values in spec.start)
        assert spec.help
    Metrics(specs, enabled=True)


def test_a_metric_of_another_kind_or_service_is_a_mistake() -> None:
    metrics = Metrics(kubelet.CPU, enabled=True)
    with pytest.raises(KeyError):
        metrics.gauge("kubelet_cpu_manager_pinning_requests_total")
    with pytest.raises(KeyError):
        metrics.counter("kubelet_memory_manager_pinning_requests_total")


def test_metrics_that_are_off_do_nothing() -> None:
    metrics = Metrics(own_metrics.all_metrics(), enabled=False)
    metrics.counter("numalign_admissions_total").labels("admitted", "").inc()
    metrics.gauge("numalign_admission_queue_depth").set(1)
    metrics.histogram("numalign_admission_duration_seconds").labels("admitted").observe(1)
    assert metrics.text() == ""
    with pytest.raises(KeyError):
        metrics.counter("numalign_unknown")
    with pytest.raises(ConfigError, match="metrics are off"):
        metrics.serve("127.0.0.1", 0)


async def test_metrics_that_are_off_load_nothing() -> None:
    script = (
        "import sys; from numalign.telemetry.own_metrics import all_metrics\n"
        "from numalign.telemetry.metrics import Metrics\n"
        "Metrics(all_metrics(), enabled=False); print('prometheus_client' in sys.modules)\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert output == b"False\n"


async def test_the_page_over_http() -> None:
    async with Metrics(kubelet.TOPOLOGY, enabled=True) as metrics:
        port = metrics.serve("127.0.0.1", 0)
        metrics.counter("kubelet_topology_manager_admission_requests_total").inc()

        def get() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                text: str = answer.read().decode()
                return text

        assert "kubelet_topology_manager_admission_requests_total 1.0" in await asyncio.to_thread(
            get
        )
        other = Metrics(kubelet.TOPOLOGY, enabled=True)
        with pytest.raises(ConfigError, match=f"metrics address 127.0.0.1:{port}: Address already"):
            other.serve("127.0.0.1", port)
        await other.close()


def test_the_alignment_counters_have_no_type_of_their_own() -> None:
    spec = MetricSpec(name="a_count", kind=Kind.COUNTER, help="h")
    assert (
        Metrics([spec], enabled=True).text()
        == "# HELP a_count h\n# TYPE a_count untyped\na_count 0.0\n"
    )


SECONDS = MetricSpec(name="a_seconds", kind=Kind.HISTOGRAM, help="Seconds", buckets=(0.1, 1.0))


@pytest.mark.parametrize(
    ("traceparent", "exemplar"),
    [
        pytest.param("00-" + "a" * 32 + "-" + "b" * 16 + "-01", "a" * 32, id="sampled"),
        pytest.param("00-" + "a" * 32 + "-" + "b" * 16 + "-00", None, id="not-sampled"),
        pytest.param(None, None, id="no-trace"),
    ],
)
async def test_a_histogram_names_the_trace_of_what_it_saw(
    traceparent: str | None, exemplar: str | None
) -> None:
    token = current_trace.set(None if traceparent is None else TraceContext(traceparent))
    async with Metrics([SECONDS], enabled=True) as metrics:
        metrics.histogram("a_seconds").observe(0.5)
        current_trace.reset(token)
        port = metrics.serve("127.0.0.1", 0)
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/metrics",
            headers={"Accept": "application/openmetrics-text; version=1.0.0"},
        )
        with await asyncio.to_thread(urllib.request.urlopen, request, timeout=60) as response:
            assert response.headers["Content-Type"].startswith("application/openmetrics-text")
            text = response.read().decode()
    families = list(openmetrics_families(text))  # type: ignore[no-untyped-call]
    found = {s.labels["le"]: s.exemplar for s in families[0].samples if s.name.endswith("bucket")}
    assert found["0.1"] is None
    got = found["1.0"]
    assert (got.labels if got else None) == (exemplar and {"trace_id": exemplar})
