"""The gauges of the CPU provider: as things are, and drifting as the kubelet's (trap 16)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.cpu.cpu_machines import (
    PLRM,
    T8,
    T16,
    TWO_OF_4,
    allocate,
    allocate_whole,
    engine,
    hint,
    pod,
)

from numalign.cpu.engine import CpuEngine
from numalign.cpu.gauges import (
    EXCLUSIVE,
    PER_NUMA,
    SHARED_POOL,
    CpuGauges,
    DriftingGauges,
    ExactGauges,
)
from numalign.cpu.state import CpuState
from numalign.model.ids import PodUid
from numalign.model.pod import Pod
from numalign.telemetry.kubelet_metrics import CPU
from numalign.telemetry.metrics import Metrics

Make = Callable[[CpuEngine, Metrics], CpuGauges]


class Shown:
    """An engine, its state, and the page that its gauges are on."""

    def __init__(self, by: CpuEngine, make: Make) -> None:
        self.by = by
        self.metrics = Metrics(CPU, enabled=True)
        self.gauges = make(by, self.metrics)
        self.state = by.start(None).state
        self.gauges.started(self.state)

    def admit(self, which: Pod, *nodes: int, keep: bool = True) -> None:
        """Allocate for every container; then the books change, or are left alone."""
        state = self.state
        affinity = hint(*nodes)
        for container in which.all_containers():
            before, state = state, allocate(self.by, state, which, container.name, affinity).state
            self.gauges.took(before, state, which, container)
        self.become(state if keep else self.state)

    def remove(self, uid: str, *names: str) -> None:
        for name in names:
            self.become(self.by.remove_container(self.state, PodUid(uid), name))

    def become(self, state: CpuState) -> None:
        self.state = state
        self.gauges.changed(state)

    def page(self) -> dict[str, float]:
        lines = [line for line in self.metrics.text().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    def pool(self) -> tuple[float, float]:
        return self.page()[EXCLUSIVE], self.page()[SHARED_POOL]

    def on_node(self, node: int) -> float | None:
        return self.page().get(f'{PER_NUMA}{{numa_node="{node}"}}')


@pytest.mark.parametrize(
    ("make", "after_admission", "after_removal"),
    [
        pytest.param(DriftingGauges, (4, 3000), (2, 5000), id="trap 16: the kubelet's"),
        pytest.param(ExactGauges, (2, 5000), (0, 7000), id="as it is"),
    ],
)
def test_reused_cpus(
    make: Make, after_admission: tuple[float, float], after_removal: tuple[float, float]
) -> None:
    shown = Shown(engine(T8), make)
    shown.admit(pod("p", {"app": "2"}, {"init": "2"}))
    assert shown.pool() == after_admission
    shown.remove("p", "init", "app")
    assert shown.pool() == after_removal


@pytest.mark.parametrize(
    ("make", "at_start", "after"),
    [
        pytest.param(DriftingGauges, None, 2, id="a node keeps its last number"),
        pytest.param(ExactGauges, 0, 0, id="as it is"),
    ],
)
def test_the_last_exclusive_cpu_of_a_node(make: Make, at_start: int | None, after: int) -> None:
    shown = Shown(engine(T16, "0,8"), make)
    assert shown.on_node(1) == at_start
    shown.admit(pod("p", {"app": "2"}), 1)
    assert shown.on_node(1) == 2
    shown.remove("p", "app")
    assert shown.on_node(1) == after


@pytest.mark.parametrize("make", [DriftingGauges, ExactGauges])
def test_what_is_undone_moves_nothing(make: Make) -> None:
    shown = Shown(engine(T8), make)
    before = shown.page()
    shown.admit(pod("p", {"app": "2"}), keep=False)
    assert shown.page() == before


def test_a_release_and_an_allocation_in_one_step() -> None:
    by = engine(T8)
    shown = Shown(by, DriftingGauges)
    shown.admit(pod("p", {"app": "2"}))
    cleaned = by.release(shown.state, PodUid("p"))
    second = pod("q", {"app": "4"})
    outcome = allocate(by, cleaned, second, "app")
    shown.gauges.took(shown.state, outcome.state, second, second.containers[0])
    shown.become(outcome.state)
    assert shown.pool() == (4, 3000)


def test_nodes_are_shown_before_a_pod_is_cut_up() -> None:
    by = engine(TWO_OF_4, "0,4", gates=PLRM)
    shown = Shown(by, DriftingGauges)
    for uid in ("p", "q"):
        which = pod(uid, {"app": "1", "rest": None}, pod_cpu="2")
        before, outcome = shown.state, allocate_whole(by, shown.state, which, hint(0))
        assert outcome.failure is None
        shown.gauges.took(before, outcome.state, which, None)
        shown.become(outcome.state)
    assert shown.pool() == (4, 2000)
    # CPU-91: the second pod is not in yet, the first is.
    assert shown.on_node(0) == 2
