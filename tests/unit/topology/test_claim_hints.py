"""Where claimed devices sit, as hints."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.dra.dra_values import pod

from numalign.dra.values import ContainerReferences, PodClaims, Reference
from numalign.families.expand import expand
from numalign.model.hint import FamilyList
from numalign.model.numa_mask import nodes_of
from numalign.topology.claim_hints import ClaimHints, PlacedDevice

MACHINE = (0, 1, 2)
WHOLE = (("k0", ""),)


def placed(*devices: tuple[str, set[int]]) -> tuple[PlacedDevice, ...]:
    return tuple(PlacedDevice(request, frozenset(nodes)) for request, nodes in devices)


def hints_of(
    *devices: tuple[str, set[int]],
    references: tuple[tuple[str, str], ...] = WHOLE,
    container: str | None = "c",
) -> dict[tuple[int, ...], bool] | None:
    """Sets of nodes, and whether each is preferred; None without hints."""
    asked = pod("c1", references=references)
    answers = ClaimHints(asked, {"c1": placed(*devices)}, MACHINE).answer(container)
    if not answers:
        return None
    (answer,) = answers
    assert answer.provider == "dra"
    assert answer.hints is not None
    (hints,) = answer.hints.values()
    assert list(answer.hints) == ["claim:c1"]
    assert isinstance(hints, FamilyList)
    return {nodes_of(hint.mask): hint.preferred for hint in expand(hints) if hint.mask is not None}


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        pytest.param(
            [("r", {1})],
            {(1,): True, (0, 1): False, (1, 2): False, (0, 1, 2): False},
            id="one",
        ),
        pytest.param([("r", {0}), ("r", {2})], {(0, 2): True, (0, 1, 2): False}, id="on two nodes"),
        pytest.param(
            [("r", {0}), ("s", {0, 2})],
            {(0,): True, (0, 1): False, (0, 2): False, (0, 1, 2): False},
            id="one near both",
        ),
        pytest.param(
            [("r", {0, 1}), ("s", {1, 2})],
            {(1,): True, (0, 1): False, (0, 2): False, (1, 2): False, (0, 1, 2): False},
            id="between them",
        ),
        pytest.param([("r", set())], None, id="nobody knows"),
        pytest.param([("r", {7})], None, id="not on this machine"),
    ],
)
def test_hints(
    devices: list[tuple[str, set[int]]], expected: dict[tuple[int, ...], bool] | None
) -> None:
    assert hints_of(*devices) == expected


def test_only_the_requests_that_the_container_refers_to() -> None:
    devices = [("r", {0}), ("s/large", {2})]

    assert min(hints_of(*devices, references=(("k0", "s"),)) or ()) == (0, 1, 2)
    assert hints_of(*devices, references=(("k0", "s"),)) == {
        (2,): True,
        (0, 2): False,
        (1, 2): False,
        (0, 1, 2): False,
    }
    assert hints_of(*devices, references=()) is None


def test_the_pod_as_a_whole_needs_what_all_its_containers_need() -> None:
    asked: PodClaims = pod("c1", references=(("k0", "r"),))
    other = ContainerReferences(name="o", references=(Reference("k0", "s"),))
    asked = replace(asked, containers=(*asked.containers, other))
    hints = ClaimHints(asked, {"c1": placed(("r", {0}), ("s", {1}))}, MACHINE)

    (whole,) = hints.answer(None)
    (single,) = hints.answer("o")
    assert whole.hints is not None
    assert single.hints is not None
    sizes = []
    for answer in (whole.hints, single.hints):
        family = answer["claim:c1"]
        assert isinstance(family, FamilyList)
        sizes.append(family.preferred_count)
    assert sizes == [2, 1]
