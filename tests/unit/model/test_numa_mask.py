from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.model.numa_mask import (
    NumaMask,
    count,
    is_narrower,
    mask_of,
    narrowness,
    nodes_of,
    subsets,
    text_of,
)

_masks = st.integers(0, (1 << 64) - 1).map(NumaMask)


@given(st.frozensets(st.integers(0, 63)))
def test_nodes_survive_the_mask(nodes: frozenset[int]) -> None:
    mask = mask_of(nodes)

    assert nodes_of(mask) == tuple(sorted(nodes))
    assert count(mask) == len(nodes)


@given(_masks, _masks)
def test_narrowness_orders_as_is_narrower(a: NumaMask, b: NumaMask) -> None:
    assert (narrowness(a) < narrowness(b)) is is_narrower(a, b)
    assert a == b or is_narrower(a, b) is not is_narrower(b, a)


@given(_masks)
def test_text_is_the_number_in_binary(mask: NumaMask) -> None:
    assert int(text_of(mask), 2) == mask
    assert len(text_of(mask)) >= 2


@given(st.lists(st.integers(0, 63), unique=True, max_size=7))
def test_subsets_are_all_and_in_order(nodes: list[int]) -> None:
    found = list(subsets(nodes))
    chosen = [
        mask_of(choice) for size in range(1, len(nodes) + 1) for choice in _choices(nodes, size)
    ]

    assert found == chosen
    assert len(set(found)) == (1 << len(nodes)) - 1


def _choices(nodes: list[int], size: int) -> list[list[int]]:
    """All ways to take `size` of `nodes`, earlier positions first."""
    if size == 0:
        return [[]]
    return [
        [node, *rest]
        for place, node in enumerate(nodes)
        for rest in _choices(nodes[place + 1 :], size - 1)
    ]


@pytest.mark.parametrize("node", [pytest.param(-1, id="below"), pytest.param(64, id="above")])
def test_ids_outside_a_mask(node: int) -> None:
    with pytest.raises(ValueError, match=r"^bit number must be in range 0-63$"):
        mask_of([0, node])
