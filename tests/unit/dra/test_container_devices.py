"""What containers get of prepared claims (DRA-26, PR-10)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.dra.dra_values import A, device, info, kept, pod

from numalign.dra.container_devices import devices_of_containers, is_for
from numalign.dra.values import ClaimDevice, ClaimProblem, ContainerReferences

ONE, TWO, ALL = device("1", "r1"), device("2", "r2"), device("3")
CLAIMS = kept(info("c1", A, d=(ONE, TWO), e=(ALL,)), info("c2", A, d=(device("4"),)))


@pytest.mark.parametrize(
    ("references", "names"),
    [
        pytest.param((("k0", ""),), ["1", "2", "3"], id="the whole claim"),
        pytest.param((("k0", "r2"),), ["2", "3"], id="a request"),
        pytest.param((("k0", ""), ("k0", "r1")), ["1", "2", "3"], id="DRA-T9"),
        pytest.param((("k1", ""), ("k0", "r1")), ["1", "3", "4"], id="order of the pod"),
        pytest.param((("k0", "r9"),), ["3"], id="an unknown request"),
    ],
)
def test_names(references: tuple[tuple[str, str], ...], names: list[str]) -> None:
    (container,) = devices_of_containers(pod("c1", "c2", references=references), CLAIMS)

    assert list(container.cdi_names) == [f"d/x={name}" for name in names]


def test_every_claim_is_told_whole_with_how_it_is_referred_to() -> None:
    asked = pod("c1", "c2", references=(("k0", "r1"), ("k1", "")))
    (container,) = devices_of_containers(asked, CLAIMS)

    assert [(used.info.key.name, used.shown) for used in container.claims] == [
        ("c1", ("k0/r1",)),
        ("c2", ("k1",)),
    ]
    assert len(container.claims[0].info.device_list()) == 3


def test_containers_without_claims_are_left_out() -> None:
    asked = pod("c1", references=(("k0", ""),))
    asked = replace(asked, containers=(ContainerReferences(name="plain"), *asked.containers))

    assert [each.name for each in devices_of_containers(asked, CLAIMS)] == ["c"]


def test_a_claim_that_is_not_kept() -> None:
    with pytest.raises(ClaimProblem) as problem:
        devices_of_containers(pod("c9", references=(("k0", ""),)), CLAIMS)

    assert str(problem.value) == (
        "internal error: unable to get claim info for ResourceClaim c9 in namespace ns"
    )


@pytest.mark.parametrize(
    ("told", "request_name", "expected"),
    [
        pytest.param(device("x", "gpu"), "gpu", True, id="same"),
        pytest.param(device("x", "gpu/large"), "gpu", True, id="DRA-T18 device"),
        pytest.param(device("x", "gpu"), "gpu/large", True, id="DRA-T18 reference"),
        pytest.param(device("x", "gpu2"), "gpu", False, id="longer"),
        pytest.param(device("x"), "gpu", True, id="of all"),
        pytest.param(device("x", "gpu"), "", True, id="to all"),
    ],
)
def test_requests_with_alternatives(told: ClaimDevice, request_name: str, expected: bool) -> None:
    assert is_for(told, request_name) is expected
