"""What the CPU provider counts, by the moments of section 18."""

from __future__ import annotations

import pytest
from tests.unit.cpu.cpu_machines import PLRM, T8, allocate, allocate_whole, engine, pod
from tests.unit.process.observed_world import samples

from numalign.cpu.gauges import ExactGauges
from numalign.cpu.observer import CpuObserver
from numalign.cpu.policy_static import StaticPolicy
from numalign.model.pod import Pod
from numalign.telemetry.kubelet_metrics import CPU, RESOURCE_MANAGER, alignment
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.resource_manager import ResourceManagerCounters

REQUESTS = "kubelet_cpu_manager_pinning_requests_total"
ERRORS = "kubelet_cpu_manager_pinning_errors_total"
ALIGNED = "kubelet_container_aligned_compute_resources_count"
MISALIGNED = "kubelet_container_aligned_compute_resources_failure_count"


def counted(which: Pod, *options: str, whole: bool = False, times: int = 1) -> dict[str, float]:
    """The series that are not zero after the pod was allocated `times` times over."""
    by = engine(T8, "0,4", *options, gates=PLRM)
    assert isinstance(by.policy, StaticPolicy)
    metrics = Metrics(
        (*CPU, *RESOURCE_MANAGER, *alignment(numa=False, static_cpu=True)), enabled=True
    )
    shares = ResourceManagerCounters(metrics, "cpu")
    observer = CpuObserver(by.policy.setup, metrics, ExactGauges(by, metrics), shares)
    state = by.start(None).state
    observer.started(state)
    for _ in range(times):
        for container in [None] if whole else which.all_containers():
            before = state
            if container is None:
                outcome = allocate_whole(by, state, which)
            else:
                outcome = allocate(by, state, which, container.name)
            observer.allocated(before, outcome, which, container)
            state = outcome.state
    observer.changed(state)
    page = samples(metrics.text())
    gauges = ("kubelet_cpu_manager_shared", "kubelet_cpu_manager_excl", "kubelet_cpu_manager_alloc")
    return {n: v for n, v in page.items() if v and not n.startswith(gauges)}


def manager(name: str, **labels: str) -> str:
    text = ",".join(f"{k}={v}" for k, v in sorted({"resource_name": "cpu", **labels}.items()))
    return f"resource_manager_{name}{{{text}}}"


@pytest.mark.parametrize(
    ("which", "options", "whole", "times", "expected"),
    [
        pytest.param(pod("p", {"a": "500m"}), (), False, 1, {}, id="shared"),
        pytest.param(
            pod("p", {"a": "2"}),
            (),
            False,
            1,
            {
                REQUESTS: 1,
                f"{ALIGNED}{{boundary=uncore_cache,scope=container}}": 1,
                manager("allocations_total", source="node"): 1,
                manager("container_assignments", assignment_type="node_exclusive"): 1,
            },
            id="exclusive",
        ),
        pytest.param(
            pod("p", {"a": "2"}),
            ("full-pcpus-only",),
            False,
            2,
            {
                REQUESTS: 2,
                f"{ALIGNED}{{boundary=physical_cpu,scope=container}}": 2,
                f"{ALIGNED}{{boundary=uncore_cache,scope=container}}": 1,
                manager("allocations_total", source="node"): 1,
                manager("container_assignments", assignment_type="node_exclusive"): 1,
            },
            id="asked again: a request and whole cores, nothing new",
        ),
        pytest.param(
            pod("p", {"a": "3"}),
            ("full-pcpus-only",),
            False,
            1,
            {
                REQUESTS: 1,
                ERRORS: 1,
                f"{MISALIGNED}{{boundary=physical_cpu,scope=container}}": 1,
                manager("allocation_errors_total", source="node"): 1,
            },
            id="not whole cores",
        ),
        pytest.param(
            pod("p", {"a": "1", "b": None}, pod_cpu="3"),
            (),
            True,
            1,
            {
                REQUESTS: 1,
                f"{ALIGNED}{{boundary=uncore_cache,scope=container}}": 1,
                manager("allocations_total", source="pod"): 2,
                manager("container_assignments", assignment_type="pod_exclusive"): 1,
                manager("container_assignments", assignment_type="pod_shared"): 1,
            },
            id="pod as a whole",
        ),
        pytest.param(
            pod("p", {"a": "1", "b": None}, pod_cpu="7"),
            (),
            True,
            1,
            {ERRORS: 1, manager("allocation_errors_total", source="pod"): 1},
            id="pod as a whole, too large",
        ),
    ],
)
def test_counters(
    which: Pod, options: tuple[str, ...], whole: bool, times: int, expected: dict[str, float]
) -> None:
    assert counted(which, *options, whole=whole, times=times) == expected
