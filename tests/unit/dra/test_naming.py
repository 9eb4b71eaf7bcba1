"""Which claims pods and containers lead to (DRA-18, DRA-19, DRA-25)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.dra.dra_values import pod

from numalign.dra.naming import ContainerClaim, NamedClaim, container_claims, named_claims
from numalign.dra.values import ClaimProblem, ContainerReferences, PodClaim, Reference

TEMPLATE = PodClaim(name="t", template="made-from")


def test_claims_in_the_order_of_the_pod_and_the_extended_one_last() -> None:
    asked = replace(
        pod("c1", "c0"),
        entries=(PodClaim(name="k0", claim_name="c1"), TEMPLATE, PodClaim(name="n", template="x")),
        statuses={"t": "made", "n": None},
        extended_claim="ext",
    )

    assert named_claims(asked) == (
        NamedClaim("c1", owned=False),
        NamedClaim("made", owned=True),
        NamedClaim("ext", owned=False),
    )


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        pytest.param(TEMPLATE, 'pod "ns/pod-a": ResourceClaim not created yet', id="not made"),
        pytest.param(
            PodClaim(name="k"),
            'pod "ns/pod-a", spec.resourceClaim "k": none of the supported fields are set',
            id="empty",
        ),
    ],
)
def test_entries_that_lead_nowhere(entry: PodClaim, text: str) -> None:
    with pytest.raises(ClaimProblem) as problem:
        named_claims(replace(pod(), entries=(entry,)))

    assert str(problem.value) == text


def test_a_container_uses_each_claim_once_with_all_its_requests() -> None:
    asked = replace(pod("c1", "c2"), extended_claim="c1")
    container = ContainerReferences(
        name="c",
        references=(Reference("k1", ""), Reference("k0", "r1"), Reference("k0", "r2")),
        extended=("r9",),
    )

    assert container_claims(asked, container) == (
        ContainerClaim("c1", ("r1", "r2", "r9"), ("k0/r1", "k0/r2")),
        ContainerClaim("c2", ("",), ("k1",)),
    )


def test_an_entry_that_the_container_does_not_use_stops_nothing() -> None:
    asked = replace(pod("c1"), entries=(TEMPLATE, PodClaim(name="k0", claim_name="c1")))
    container = ContainerReferences(name="c", references=(Reference("k0", ""),))

    assert [claim.name for claim in container_claims(asked, container)] == ["c1"]
