"""The fingerprint of pods, against ones that schedulers' own code computed."""

from __future__ import annotations

import random

import pytest

from numalign_agent.node.topology.fingerprint import fingerprint

TEN = [
    ("analytics", "controller-69dkj"),
    ("kube-public", "subscriber-tq6v7"),
    ("kube-public", "transformer-hfbng"),
    ("kube-public", "validator-c6pn5"),
    ("kube-system", "proxy-wszrd"),
    ("middleware", "processor-jkrl4"),
    ("network", "gateway-vsll5"),
    ("network", "importer-kzdfr"),
    ("network", "importer-q5vt9"),
    ("staging", "prometheus-bwgbn"),
]
FIVE = [("ns1", "n1"), ("ns1", "n2"), ("ns2", "n1"), ("ns3", "n1"), ("ns3", "n2")]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(TEN, "pfp0v001567144e4a561bb5a", id="ten"),
        pytest.param(FIVE, "pfp0v001b92008c14168b3a6", id="five"),
        pytest.param([], "pfp0v001ef46db3751d8e999", id="none"),
    ],
)
def test_what_others_compute(pods: list[tuple[str, str]], expected: str) -> None:
    shuffled = random.Random(7).sample(pods, len(pods))

    assert fingerprint(pods) == fingerprint(shuffled) == expected


def test_namespace_and_name_are_told_apart() -> None:
    assert len({fingerprint([pair]) for pair in (("a", "bc"), ("ab", "c"), ("bc", "a"))}) == 3
