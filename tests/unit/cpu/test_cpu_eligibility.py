"""Who gets exclusive CPUs, and how many."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.cpu.cpu_machines import (
    GATES,
    PLRM,
    T8,
    allocate,
    allocate_whole,
    engine,
    hints,
    pod,
)

from numalign.cpu.eligibility import (
    NO_CPUS_FOR_SHARED,
    SHARED_INIT_WITHOUT_CPUS,
    container_counts,
    empty_pool,
    pod_count,
)
from numalign.cpu.strategies import KUBELET
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod, Resources
from numalign.model.quantity import Quantity


@pytest.mark.parametrize(
    ("cpu", "count"),
    [("2", 2), ("2000m", 2), ("1500m", 0), ("1k", 1000), ("0", 0), (None, 0), ("999999u", 1)],
)
def test_whole_cpus_count(cpu: str | None, count: int) -> None:
    assert container_counts(pod("p", {"a": cpu}), GATES) == {"a": count}


def test_only_guaranteed_pods_count() -> None:
    burstable = replace(pod("p", {"a": "2"}, {"i": "1"}), status_qos_class="Burstable")

    assert container_counts(burstable, GATES) == {"i": 0, "a": 0}
    assert pod_count(burstable, GATES) == 0


@pytest.mark.parametrize(
    ("which", "count"),
    [
        pytest.param(pod("p", {"a": "2", "b": "3"}), 5, id="apps add up"),
        pytest.param(pod("p", {"a": "2"}, {"i": "4", "j": "3"}), 4, id="largest init"),
        pytest.param(
            pod("p", {"a": "2"}, {"s": "1", "i": "4"}, frozenset({"s"})), 5, id="sidecar first"
        ),
        pytest.param(
            pod("p", {"a": "2"}, {"i": "4", "s": "1"}, frozenset({"s"})), 4, id="sidecar last"
        ),
        pytest.param(
            pod("p", {"a": "4"}, {"i": "4", "s": "1"}, frozenset({"s"})), 5, id="sidecar stays"
        ),
        pytest.param(pod("p", {"a": "1500m"}), 0, id="fraction"),
        pytest.param(pod("p", {"a": "2"}, pod_cpu="6"), 2, id="pod level not managed"),
    ],
)
def test_pod_counts(which: Pod, count: int) -> None:
    assert pod_count(which, GATES) == count


@pytest.mark.parametrize(("cpu", "count"), [("6", 6), ("1500m", 0), ("0", 0)])
def test_managed_pods_count_as_a_whole(cpu: str, count: int) -> None:
    assert pod_count(pod("p", {"a": "2"}, pod_cpu=cpu), PLRM) == count


def test_managed_pods_without_requests_or_guarantee() -> None:
    limits = Resources(limits={"cpu": Quantity.parse("2")})
    assert pod_count(replace(pod("p", {"a": "2"}), resources=limits), PLRM) == 0
    burstable = replace(pod("p", {"a": "2"}, pod_cpu="4"), status_qos_class="Burstable")
    assert pod_count(burstable, PLRM) == 0


@pytest.mark.parametrize(
    ("requests", "limits", "count"),
    [
        pytest.param(("2", "1Gi"), ("2", "1Gi"), 2, id="alike"),
        pytest.param(("2", "1Gi"), ("3", "1Gi"), 0, id="more cpu"),
        pytest.param(("2", "1Gi"), ("2", "2Gi"), 0, id="more memory"),
        pytest.param(("2", "0"), ("2", "0"), 0, id="no memory"),
        pytest.param(("2", None), ("2", "1Gi"), 0, id="memory not requested"),
    ],
)
def test_containers_of_managed_pods_must_be_guaranteed_themselves(
    requests: tuple[str | None, ...], limits: tuple[str | None, ...], count: int
) -> None:
    def amounts(pair: tuple[str | None, ...]) -> dict[str, Quantity]:
        named = zip(("cpu", "memory"), pair, strict=True)
        return {name: Quantity.parse(text) for name, text in named if text is not None}

    each = Container(
        name="a", resources=Resources(requests=amounts(requests), limits=amounts(limits))
    )
    which = replace(pod("p", {}, pod_cpu="4"), containers=(each,))

    assert container_counts(which, PLRM) == {"a": count}
    assert container_counts(which, GATES) == {"a": 2}


@pytest.mark.parametrize(
    ("which", "budget", "message"),
    [
        pytest.param(pod("p", {"a": "2", "b": None}), 3, None, id="something left"),
        pytest.param(pod("p", {"a": "2", "b": None}), 2, NO_CPUS_FOR_SHARED, id="nothing left"),
        pytest.param(pod("p", {"a": "2"}), 2, None, id="nobody shares"),
        pytest.param(
            pod("p", {"a": "1"}, {"s": "2", "i": None}, frozenset({"s"})),
            2,
            SHARED_INIT_WITHOUT_CPUS,
            id="sidecar takes all before a shared init container",
        ),
        pytest.param(
            pod("p", {"a": "1"}, {"i": None, "s": "2"}, frozenset({"s"})),
            3,
            None,
            id="shared init container before the sidecar",
        ),
        pytest.param(
            pod("p", {"a": "2"}, {"s": None}, frozenset({"s"})),
            2,
            NO_CPUS_FOR_SHARED,
            id="shared sidecar",
        ),
    ],
)
def test_empty_pools(which: Pod, budget: int, message: str | None) -> None:
    assert empty_pool(which, budget, PLRM) == message


@pytest.mark.parametrize(
    "gates",
    [
        pytest.param(GATES, id="not managed"),
        pytest.param(
            FeatureGates(pod_level_resources=False, pod_level_resource_managers=True),
            id="gate off",
        ),
    ],
)
def test_pods_left_alone_get_nothing(gates: FeatureGates) -> None:
    by = engine(T8, gates=gates, strategies=KUBELET)
    state = by.start(None).state
    which = pod("p", {"a": "2"}, pod_cpu="4")

    assert hints(by, state, which, "a") is None
    assert hints(by, state, which) is None
    assert allocate(by, state, which, "a").state == state
    assert allocate_whole(by, state, which).state == state


def test_rejected_pod_names_the_empty_pool() -> None:
    by = engine(T8, gates=PLRM)
    state = by.start(None).state
    which = pod("p", {"a": "2", "b": None}, pod_cpu="2")

    failure = allocate_whole(by, state, which).failure

    assert hints(by, state, which) == {"cpu": ()}
    assert failure is not None
    assert (failure.reason, failure.message) == ("EmptyPodSharedPoolError", NO_CPUS_FOR_SHARED)
