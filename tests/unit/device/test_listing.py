"""Lists with oddities: as the kubelet takes them, and safely."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.device.device_world import bare, device

from numalign.device.inventory import Device
from numalign.device.listing import (
    DUPLICATE_ID,
    UNKNOWN_NODE,
    listed_as_sent,
    listed_safely,
)

NODES = (0, 1)
DEVICES = st.lists(
    st.builds(
        Device,
        id=st.sampled_from("abcd"),
        numa_nodes=st.none() | st.lists(st.integers(-2, 3), max_size=3).map(tuple),
        health=st.sampled_from(["Healthy", "Unhealthy", ""]),
    ),
    max_size=6,
)


@pytest.mark.parametrize(
    ("sent", "counted", "kinds"),
    [
        pytest.param([device("a", 0), bare("b")], [device("a", 0), bare("b")], [], id="fine"),
        pytest.param([device("a")], [device("a")], [], id="topology-without-nodes"),
        pytest.param(
            [device("a", 0), device("a", 1, health="Unhealthy")],
            [device("a", 1, health="Unhealthy")],
            [DUPLICATE_ID],
            id="twice",
        ),
        pytest.param([device("a", 7)], [bare("a")], [UNKNOWN_NODE], id="unknown"),
        pytest.param([device("a", -1)], [bare("a")], [UNKNOWN_NODE], id="negative"),
        pytest.param([device("a", 1, 7)], [device("a", 1)], [UNKNOWN_NODE], id="one-of-two"),
    ],
)
def test_safely(sent: list[Device], counted: list[Device], kinds: list[str]) -> None:
    listing = listed_safely(sent, NODES)

    assert list(listing.devices) == counted
    assert [oddity.kind for oddity in listing.oddities] == kinds


def test_what_is_said_of_an_oddity() -> None:
    listing = listed_safely([device("a", 7, -1), device("a", 0)], NODES)

    assert [oddity.what for oddity in listing.oddities] == [
        'device "a" is on NUMA node 7, -1, which is not here',
        'device "a" is listed twice',
    ]


@given(DEVICES)
def test_as_sent_changes_nothing(sent: list[Device]) -> None:
    listing = listed_as_sent(sent, NODES)

    assert list(listing.devices) == sent
    assert listing.oddities == ()


@given(DEVICES)
def test_safe_lists_are_sound(sent: list[Device]) -> None:
    listing = listed_safely(sent, NODES)
    by_id = {d.id: d for d in sent}

    assert {d.id: d.health for d in listing.devices} == {d.id: d.health for d in by_id.values()}
    assert len(listing.devices) == len(by_id)
    assert all(node in NODES for d in listing.devices for node in d.numa_nodes or ())
    assert listed_safely(listing.devices, NODES).oddities == ()
