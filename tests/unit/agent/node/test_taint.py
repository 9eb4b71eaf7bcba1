"""The start-up taint of a Node: the patches, and that they touch nobody else's taint."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.fake_api.store import Problem, operated

from numalign_agent.node.taint import KEY, TAINT, addition, is_tainted, removal

OTHER = {"key": "example.com/other", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
THIRD = {"key": "example.com/third", "value": "x", "effect": "NoSchedule"}
EXECUTING = {"key": KEY, "effect": "NoExecute"}


def node(*taints: dict[str, str], **spec: Any) -> dict[str, Any]:
    with_taints = {"taints": list(taints)} if taints else {}
    return {
        "metadata": {"name": "n", "resourceVersion": "7"},
        "spec": {"podCIDR": "10.0.0.0/24", **with_taints, **spec},
    }


def without(given: dict[str, Any]) -> dict[str, Any]:
    return operated(given, [dict(each) for each in removal(given)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(node(TAINT), [], id="alone"),
        pytest.param(node(OTHER, TAINT, THIRD), [OTHER, THIRD], id="between-others"),
        pytest.param(node(TAINT, OTHER, EXECUTING), [OTHER], id="with-every-effect"),
        pytest.param(node({**TAINT, "value": "x"}, OTHER), [OTHER], id="with-a-value"),
    ],
)
def test_it_is_taken_off_and_nothing_else_is(before: dict[str, Any], after: list[Any]) -> None:
    expected = {**before, "spec": {**before["spec"], "taints": after}}

    assert is_tainted(before)
    assert without(before) == expected
    assert not is_tainted(expected)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(node(OTHER), id="others"),
        pytest.param(node(), id="none"),
        pytest.param(node(taints=None), id="null"),
        pytest.param({"metadata": {}}, id="no-spec"),
    ],
)
def test_where_there_is_none_there_is_nothing_to_take_off(given: dict[str, Any]) -> None:
    assert not is_tainted(given)
    assert removal(given) == []


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(node(OTHER, THIRD, TAINT), id="another-one-before-it"),
        pytest.param(node(OTHER), id="gone"),
        pytest.param(node(OTHER, {**TAINT, "effect": "NoExecute"}), id="another-effect"),
    ],
)
def test_a_removal_that_was_overtaken_changes_nothing(now: dict[str, Any]) -> None:
    patch = [dict(each) for each in removal(node(OTHER, TAINT))]

    with pytest.raises(Problem) as caught:
        operated(now, patch)

    assert caught.value.status == 422


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(node(OTHER, THIRD), id="beside-others"),
        pytest.param(node(), id="as-the-first"),
        pytest.param(node(taints=None), id="null"),
    ],
)
def test_it_is_put_back(given: dict[str, Any]) -> None:
    after = operated(given, [dict(each) for each in addition(given)])

    assert after["spec"]["taints"] == [*(given["spec"].get("taints") or []), TAINT]


def test_it_is_put_back_once() -> None:
    assert addition(node(OTHER, EXECUTING)) == ()


@pytest.mark.parametrize(
    ("read", "now"),
    [
        pytest.param(node(OTHER), node(OTHER, THIRD), id="one-more"),
        pytest.param(node(), {**node(THIRD), "metadata": {"resourceVersion": "8"}}, id="a-first"),
    ],
)
def test_an_addition_that_was_overtaken_changes_nothing(
    read: dict[str, Any], now: dict[str, Any]
) -> None:
    with pytest.raises(Problem):
        operated(now, [dict(each) for each in addition(read)])
