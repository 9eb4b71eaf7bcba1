"""What each kind of absence means to the merge."""

from __future__ import annotations

import pytest

from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.numa_mask import NumaMask
from numalign.topology.normalise import normalise

HINT = TopologyHint(NumaMask(1), True)
NO_PREFERENCE = (TopologyHint(None, True),)
NOWHERE = (TopologyHint(None, False),)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([], [], id="no-providers"),
        pytest.param([None], [NO_PREFERENCE], id="no-mapping"),
        pytest.param([{}], [NO_PREFERENCE], id="empty-mapping"),
        pytest.param([{"cpu": None}], [NO_PREFERENCE], id="no-list"),
        pytest.param([{"cpu": ()}], [NOWHERE], id="empty-list"),
        pytest.param([{"cpu": (HINT, HINT)}], [(HINT, HINT)], id="as-it-is"),
        pytest.param(
            [{"a": (HINT,), "b": None}, None, {"c": ()}],
            [(HINT,), NO_PREFERENCE, NO_PREFERENCE, NOWHERE],
            id="provider-order",
        ),
    ],
)
def test_normalise(answers: list[ProviderHints], expected: list[tuple[TopologyHint, ...]]) -> None:
    assert normalise(answers) == expected
