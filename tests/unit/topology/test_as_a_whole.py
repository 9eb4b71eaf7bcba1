"""When a pod is decided on once more as a whole, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numalign.model.ids import PodUid
from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Container, Pod
from numalign.topology.as_a_whole import AsAWhole
from numalign.topology.explainer import Explainer
from numalign.topology.numa_info import NumaInfo
from numalign.topology.policy_single_numa_node import SingleNumaNodePolicy
from numalign.topology.scope import ScopeResult
from numalign.topology.scope_pod import PodScope

POLICY = SingleNumaNodePolicy(NumaInfo(nodes=(0, 1), default_mask=NumaMask(3)))
WHOLE = AsAWhole(
    PodScope(POLICY, lambda _pod: False), Explainer(POLICY, POLICY.numa, "pod"), "container"
)
REFUSED = ScopeResult(admitted=False, reason="TopologyAffinityError", message="does not fit")
ONE = Pod(uid=PodUid("p"), containers=(Container(name="a"),))
TWO = replace(ONE, containers=(Container(name="a"), Container(name="b")))
WITH_INIT = replace(ONE, init_containers=(Container(name="i", is_init=True),))


@pytest.mark.parametrize(
    ("pod", "result", "expected"),
    [
        pytest.param(TWO, REFUSED, True, id="refused"),
        pytest.param(WITH_INIT, REFUSED, True, id="with-an-init-container"),
        pytest.param(ONE, REFUSED, False, id="one-container-is-the-whole-pod"),
        pytest.param(TWO, ScopeResult(admitted=True), False, id="admitted"),
        pytest.param(TWO, replace(REFUSED, keeps_nothing=True), False, id="not-to-be-judged"),
        pytest.param(
            TWO, replace(REFUSED, keeps_nothing=True, retry_after=2.0), False, id="not-yet"
        ),
    ],
)
def test_when(pod: Pod, result: ScopeResult, expected: bool) -> None:
    assert WHOLE.is_for(pod, result) is expected


def test_the_answer_says_so() -> None:
    assert WHOLE.warning(REFUSED) == (
        "decided in scope pod, since scope container would have refused it "
        "(TopologyAffinityError: does not fit)"
    )
