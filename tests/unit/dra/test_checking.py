"""Whether a pod may use its claims, and in which order that is found out (DRA-20)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.dra.dra_values import A, B, fetched, info, kept, pod

from numalign.dra.checking import checked_claims
from numalign.dra.values import (
    ClaimKey,
    ClaimProblem,
    Claims,
    Consumer,
    FetchedClaim,
    Phase,
    PodClaim,
    PodClaims,
)
from numalign.errors import InvalidInput

OWNED = replace(
    pod(), entries=(PodClaim(name="t", template="x"),), statuses={"t": "c1"}, namespace="ns"
)


def check(
    asked: PodClaims,
    *claims: FetchedClaim,
    kept_claims: Claims | None = None,
    registered: tuple[str, ...] = ("d",),
) -> list[str]:
    passed = checked_claims(
        asked,
        {claim.key.name: claim for claim in claims},
        kept_claims or {},
        lambda driver: driver in registered,
    )
    return [claim.key.name for claim in passed]


def test_the_same_claim_twice_is_one_claim() -> None:
    """A kubelet never starts such a pod (DRA-T2)."""
    assert check(pod("c1", "c2", "c1"), fetched("c1", "d"), fetched("c2", "d")) == ["c1", "c2"]


def test_a_claim_of_no_devices_needs_no_driver() -> None:
    assert check(pod("c1"), fetched("c1"), registered=()) == ["c1"]


def test_a_prepared_claim_needs_no_driver() -> None:
    """DRA-T5."""
    prepared = kept(info("c1", B, d=()))
    asked = kept(info("c1", B, phase=Phase.ASKED, d=()))

    assert check(pod("c1"), fetched("c1", "d"), kept_claims=prepared, registered=()) == ["c1"]
    with pytest.raises(ClaimProblem, match="DRA driver d is not registered"):
        check(pod("c1"), fetched("c1", "d"), kept_claims=asked, registered=())


@pytest.mark.parametrize(
    ("asked", "claim", "text"),
    [
        pytest.param(
            OWNED,
            replace(fetched("c1", "d"), key=ClaimKey("other", "c1")),
            "ResourceClaim other/c1 is not in the same namespace as Pod ns/pod-a",
            id="namespace",
        ),
        pytest.param(
            OWNED,
            fetched("c1", "d", controller="somebody"),
            "ResourceClaim ns/c1 was not created for Pod ns/pod-a (Pod is not owner)",
            id="owner",
        ),
        pytest.param(
            pod("c1"),
            fetched("c1", "d", users=(B,)),
            "pod pod-a (a) is not allowed to use ResourceClaim c1 (u-c1)",
            id="reserved",
        ),
        pytest.param(
            pod("c1"),
            replace(
                fetched("c1", "d"),
                reserved_for=(Consumer(api_group="x.io", resource="pods", uid=A),),
            ),
            "pod pod-a (a) is not allowed to use ResourceClaim c1 (u-c1)",
            id="DRA-T11 group",
        ),
        pytest.param(
            pod("c1"),
            replace(
                fetched("c1", "d"),
                reserved_for=(Consumer(api_group="", resource="widgets", uid=A),),
            ),
            "pod pod-a (a) is not allowed to use ResourceClaim c1 (u-c1)",
            id="DRA-T11 resource",
        ),
        pytest.param(
            pod("c1"),
            fetched("c1", allocated=False),
            "ResourceClaim c1: not allocated",
            id="allocated",
        ),
        pytest.param(
            pod("c1"), fetched("c1", "e"), "DRA driver e is not registered", id="registered"
        ),
        pytest.param(pod("c1"), fetched("c1", ""), "DRA driver name is empty", id="nameless"),
        pytest.param(
            pod("c1"),
            fetched("c1", "d", uid="new"),
            "old ResourceClaim with same name c1 and different UID u-c1 still exists "
            "(previous pod force-deleted?!)",
            id="uid",
        ),
    ],
)
def test_what_stands_in_the_way(asked: PodClaims, claim: FetchedClaim, text: str) -> None:
    with pytest.raises(ClaimProblem) as problem:
        checked_claims(
            asked,
            {"c1": claim},
            kept(info("c1", B, d=())),
            lambda driver: driver == "d",
        )

    assert str(problem.value) == text


def test_the_owner_may_use_what_was_made_for_it() -> None:
    assert check(OWNED, fetched("c1", "d", controller=A)) == ["c1"]


def test_the_first_claim_in_the_way_counts() -> None:
    asked = pod("c1", "c2")
    claims: dict[str, FetchedClaim | str] = {"c1": "c1 is secret", "c2": fetched("c2", "e")}

    with pytest.raises(ClaimProblem, match="fetch ResourceClaim c1: c1 is secret"):
        checked_claims(asked, claims, {}, lambda _: True)


def test_a_claim_that_was_left_out_is_the_callers_mistake() -> None:
    with pytest.raises(InvalidInput, match='claims: says nothing of ResourceClaim "c1"'):
        checked_claims(pod("c1"), {}, {}, lambda _: True)
