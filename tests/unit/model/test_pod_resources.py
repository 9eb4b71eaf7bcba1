from __future__ import annotations

import pytest

from numalign.model.feature_gates import FeatureGates
from numalign.model.ids import PodUid
from numalign.model.pod import Container, Pod, Resources
from numalign.model.pod_resources import (
    containers_limits,
    containers_requests,
    is_pod_level_resource,
    pod_level_resources_set,
    pod_limits,
    pod_requests,
)
from numalign.model.quantity import Quantity

_ON = FeatureGates()
_OFF = FeatureGates(pod_level_resources=False)


def _amounts(**texts: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in texts.items()}


def _asks(name: str, cpu: str, *, init: bool = False, sidecar: bool = False) -> Container:
    amounts = _amounts(cpu=cpu)
    return Container(
        name=name,
        resources=Resources(requests=amounts, limits=amounts),
        is_init=init or sidecar,
        restartable=sidecar,
    )


def _texts(amounts: dict[str, Quantity]) -> dict[str, str]:
    return {name: quantity.canonical() for name, quantity in amounts.items()}


@pytest.mark.parametrize(
    ("inits", "apps", "cpu"),
    [
        pytest.param((), ("1", "2"), "3", id="apps-add-up"),
        pytest.param((("5", False),), ("1", "2"), "5", id="a-large-init-phase"),
        pytest.param((("5", False), ("4", False)), ("1",), "5", id="init-phases-take-turns"),
        pytest.param((("1", True),), ("1", "2"), "4", id="sidecars-stay"),
        pytest.param((("2", True), ("5", False)), ("1",), "7", id="sidecar-before-init"),
        pytest.param((("5", False), ("2", True)), ("1",), "5", id="sidecar-after-init"),
    ],
)
def test_the_greatest_moment(
    inits: tuple[tuple[str, bool], ...], apps: tuple[str, ...], cpu: str
) -> None:
    pod = Pod(
        uid=PodUid("u"),
        init_containers=tuple(
            _asks(f"i{n}", text, init=True, sidecar=sidecar)
            for n, (text, sidecar) in enumerate(inits)
        ),
        containers=tuple(_asks(f"c{n}", text) for n, text in enumerate(apps)),
    )

    assert _texts(containers_requests(pod)) == {"cpu": cpu}
    assert containers_limits(pod) == containers_requests(pod)
    assert pod_requests(pod, _ON) == containers_requests(pod)


def test_the_pod_level_overrules_what_it_may_hold() -> None:
    section = Resources(
        requests={**_amounts(cpu="4"), "example.com/gpu": Quantity.parse("9")},
        limits=_amounts(cpu="8", memory="1Gi"),
    )
    pod = Pod(uid=PodUid("u"), containers=(_asks("c", "2"),), resources=section)

    assert _texts(pod_requests(pod, _ON)) == {"cpu": "4"}
    assert _texts(pod_limits(pod, _ON)) == {"cpu": "8", "memory": "1Gi"}
    assert _texts(pod_requests(pod, _OFF)) == {"cpu": "2"}
    assert _texts(pod_limits(pod, _OFF)) == {"cpu": "2"}


def test_overhead_adds_to_requests_and_raises_limits_that_are_there() -> None:
    pod = Pod(
        uid=PodUid("u"),
        containers=(
            Container(
                name="c",
                resources=Resources(
                    requests=_amounts(cpu="1"), limits=_amounts(cpu="0", memory="1Gi")
                ),
            ),
        ),
        overhead=_amounts(cpu="250m", memory="1Gi", storage="1"),
    )

    assert _texts(pod_requests(pod, _ON)) == {"cpu": "1250m", "memory": "1Gi", "storage": "1"}
    assert _texts(pod_limits(pod, _ON)) == {"cpu": "0", "memory": "2Gi"}
    assert _texts(containers_limits(pod)) == {"cpu": "0", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        pytest.param(None, False, id="none"),
        pytest.param(Resources(), False, id="empty"),
        pytest.param(Resources(limits=_amounts(cpu="0")), True, id="limit"),
        pytest.param(Resources(requests=_amounts(memory="1")), True, id="request"),
        pytest.param(Resources(requests=_amounts(storage="1")), False, id="unsupported"),
    ],
)
def test_pod_level_resources_set(section: Resources | None, expected: bool) -> None:
    assert pod_level_resources_set(Pod(uid=PodUid("u"), resources=section)) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cpu", True), ("memory", True), ("hugepages-1Gi", True), ("ephemeral-storage", False)],
)
def test_pod_level_names(name: str, expected: bool) -> None:
    assert is_pod_level_resource(name) is expected
