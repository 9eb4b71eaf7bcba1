"""Amounts, nodes and lists in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.model.ids import NumaId, PodUid
from numalign.model.numa_mask import NumaMask
from numalign.model.quantity import Quantity
from numalign.provider.values import Holder, NodeFacts, ResourceFacts
from numalign.topology.explain_words import (
    LONGEST_PARAGRAPH,
    amount_words,
    asked_words,
    holders_words,
    listed,
    masks_words,
    nodes_words,
    paragraph,
)


def facts(requested: int, *free_of: tuple[int, int], resource: str = "cpu") -> ResourceFacts:
    return ResourceFacts(
        resource=resource,
        requested=requested,
        nodes=tuple(
            NodeFacts(node=NumaId(node), capacity=capacity, reserved=0, free=free)
            for node, (free, capacity) in enumerate(free_of)
        ),
    )


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [
        pytest.param("cpu", 5, "5", id="cpus"),
        pytest.param("example.com/gpu", 0, "0", id="devices"),
        pytest.param("memory", 0, "0", id="no-memory"),
        pytest.param("memory", 1000, "1000 bytes", id="bytes"),
        pytest.param("memory", 50 << 30, "50Gi", id="gi"),
        pytest.param("memory", (1 << 30) + (1 << 29), "1.5Gi", id="half"),
        pytest.param("memory", 100 << 30, "100Gi", id="zeros-before-the-point-stay"),
        pytest.param("hugepages-2Mi", 16 << 20, "16Mi", id="huge-pages"),
        pytest.param("hugepages-1Gi", 2 << 30, "2Gi", id="huge-pages-gi"),
        pytest.param("memory", (2 << 30) - 1, "1.99Gi", id="never-up"),
        pytest.param("memory", 1536, "1.5Ki", id="ki"),
    ],
)
def test_amounts_have_units(resource: str, amount: int, words: str) -> None:
    assert amount_words(resource, amount) == words


@given(st.integers(1, 1 << 45))
def test_bytes_are_never_rounded_up_and_hardly_down(amount: int) -> None:
    shown = Quantity.parse(amount_words("memory", amount).removesuffix(" bytes")).value()

    assert amount * 0.99 - 1 <= shown <= amount


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param(["a"], "a", id="one"),
        pytest.param(["a", "b"], "a and b", id="two"),
        pytest.param(["a", "b", "c"], "a, b and c", id="three"),
    ],
)
def test_lists(words: list[str], text: str) -> None:
    assert listed(words) == text


def test_nodes() -> None:
    assert nodes_words([1]) == "NUMA node 1"
    assert nodes_words([0, 2]) == "NUMA nodes 0 and 2"


@pytest.mark.parametrize(
    ("masks", "any_node", "text"),
    [
        pytest.param([], True, "any node", id="any"),
        pytest.param([], False, "nothing", id="nothing"),
        pytest.param([1, 2], False, "{0} or {1}", id="two"),
        pytest.param([1, 2, 4, 3, 5], False, "{0}, {1}, {2} or 2 more", id="many"),
    ],
)
def test_masks(masks: list[int], any_node: bool, text: str) -> None:
    assert masks_words([NumaMask(mask) for mask in masks], any_node=any_node) == text


@pytest.mark.parametrize(
    ("given_facts", "text"),
    [
        pytest.param(
            facts(5, (3, 6), (4, 6), (4, 6)),
            "cpu asked 5; NUMA nodes 0, 1 and 2 have 3, 4 and 4 free of 6",
            id="alike",
        ),
        pytest.param(
            facts(2, (1, 1), (2, 3)),
            "cpu asked 2; NUMA nodes 0 and 1 have 1 of 1 and 2 of 3 free",
            id="uneven",
        ),
        pytest.param(facts(2, (1, 4)), "cpu asked 2; NUMA node 0 has 1 free of 4", id="one-node"),
        pytest.param(facts(2), "cpu asked 2; no NUMA node has any", id="no-node"),
        pytest.param(
            facts(4, *((node, 9) for node in range(9))),
            "cpu asked 4; 9 NUMA nodes have 0 to 8 free each, 36 in all",
            id="many-nodes",
        ),
    ],
)
def test_what_was_asked_and_what_is_free(given_facts: ResourceFacts, text: str) -> None:
    assert asked_words(given_facts) == text


def test_the_largest_holders_are_named() -> None:
    def node(node: int, **amounts: int) -> NodeFacts:
        held = (
            Holder(pod_uid=PodUid(uid), container="" if uid == "whole" else "app", amount=amount)
            for uid, amount in amounts.items()
        )
        return NodeFacts(node=NumaId(node), capacity=9, reserved=0, free=0, holders=tuple(held))

    some = ResourceFacts(
        resource="cpu", requested=1, nodes=(node(0, a=2, b=1, whole=3), node(1, b=4, c=1))
    )

    assert holders_words(some) == "cpu is held by b/app (5), whole (3) and 2 more"
    assert holders_words(facts(1, (1, 1))) == ""


def test_a_paragraph_takes_what_there_is_room_for() -> None:
    assert paragraph(["one", "", "two."], "{} more.") == "one. two."
    long = "x" * (LONGEST_PARAGRAPH - 10)
    assert paragraph(["one", long, "two"], "{} more.") == f"one. {long}. 1 more."
    assert paragraph(["one", long + long, "two"], "{} more.") == "one. 2 more."
    assert paragraph([long + long, "two"]) == f"{long}{long}."
