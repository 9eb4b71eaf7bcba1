"""The paragraph on a refusal: why, then what would have fitted, then who holds the rest."""

from __future__ import annotations

import pytest
from tests.unit.topology.explain_world import Node, machine

from numalign.model.ids import NumaId, PodUid
from numalign.provider.values import Holder, NodeFacts, ResourceFacts
from numalign.topology.explain_summary import rejection
from numalign.topology.explain_words import LONGEST_PARAGRAPH
from numalign.topology.explanation import Found, Obstacle
from numalign.topology.scope import ScopeResult

HOLDER = Holder(pod_uid=PodUid("before"), container="app", amount=4)
FACTS = ResourceFacts(
    resource="cpu",
    requested=4,
    minimum_nodes=1,
    nodes=(NodeFacts(node=NumaId(0), capacity=6, reserved=0, free=2, holders=(HOLDER,)),),
)
HEAD = 'Rejected (TopologyAffinityError) by policy restricted in container scope, container "c"'
HELD = " cpu is held by before/app (4)."


def summary(why: str, would_fit: str) -> str:
    obstacle = Obstacle(
        container="c",
        resources=("cpu",),
        why=why,
        would_fit=would_fit,
        found=(Found(provider="cpu", facts=FACTS),),
    )
    result = ScopeResult(admitted=False, reason="TopologyAffinityError")
    policy = Node(machine(4), "restricted", reserved="0").decider.policy
    return rejection(result, policy, "container", obstacle).summary


@pytest.mark.parametrize(
    ("why", "would_fit", "told"),
    [
        pytest.param(
            "too few", "cpu of 2", " What would have fitted: cpu of 2." + HELD, id="in-order"
        ),
        pytest.param("too few", "", HELD, id="nothing-would-have-fitted"),
        pytest.param(
            "w" * LONGEST_PARAGRAPH, "cpu of 2", " What would have fitted: cpu of 2.", id="no-room"
        ),
    ],
)
def test_first_why_then_what_would_have_fitted_then_who_holds_it(
    why: str, would_fit: str, told: str
) -> None:
    assert summary(why, would_fit) == f"{HEAD}: {why}.{told}"
