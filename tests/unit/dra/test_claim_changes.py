"""How the kept claims change (DRA-21 to DRA-31), with the traps that are not copied."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.dra.dra_values import A, B, device, fetched, info, kept, key

from numalign.dra import claim_changes as changes
from numalign.dra.values import Batches, ClaimKey, Claims, Phase
from numalign.model.ids import PodUid


def prepare(claims: Claims, pod: PodUid, *wanted: str, driver: str = "d") -> Claims:
    """Everything goes well."""
    asked = [fetched(name, driver) for name in wanted]
    claims = changes.joined(claims, pod, 1, asked)
    batches = changes.to_prepare(claims, asked)
    claims = changes.asked(claims, batches)
    for name, batch in batches.items():
        claims = changes.prepared(claims, name, {i.key: (device("x"),) for i in batch})
    return claims


def unprepare(claims: Claims, pod: PodUid, failing: Iterable[str] = ()) -> Claims:
    claims = changes.without_shared(claims, pod)
    batches = changes.to_unprepare(claims, pod)
    claims = changes.asked(claims, batches)
    for driver, batch in batches.items():
        if driver not in failing:
            claims = changes.unprepared(claims, driver, [i.key for i in batch])
    return changes.without_ended(claims, pod)


def drivers_asked(batches: Batches) -> dict[str, list[str]]:
    return {driver: [i.key.name for i in batch] for driver, batch in batches.items()}


def test_one_batch_for_each_driver_in_the_order_of_the_pod() -> None:
    wanted = [fetched("c2", "e", "d"), fetched("c1", "d")]
    claims = changes.joined({}, A, 1, wanted)

    assert drivers_asked(changes.to_prepare(claims, wanted)) == {"e": ["c2"], "d": ["c2", "c1"]}


def test_a_driver_that_has_prepared_a_claim_is_not_asked_again() -> None:
    """Neither for the next pod nor after the other driver failed (DRA-T3)."""
    wanted = [fetched("c1", "d", "e")]
    claims = changes.joined({}, A, 1, wanted)
    claims = changes.asked(claims, changes.to_prepare(claims, wanted))
    claims = changes.prepared(claims, "d", {key("c1"): (device("x"),)})

    assert not claims[key("c1")].is_prepared
    assert drivers_asked(changes.to_prepare(claims, wanted)) == {"e": ["c1"]}

    claims = changes.prepared(claims, "e", {key("c1"): ()})
    claims = changes.joined(claims, B, 2, wanted)

    assert claims[key("c1")].is_prepared
    assert drivers_asked(changes.to_prepare(claims, wanted)) == {}


def test_devices_are_replaced_and_not_added() -> None:
    """DRA-T3."""
    claims = kept(info("c1", A, phase=Phase.ASKED, d=(device("x"), device("y"))))
    claims = dict(changes.prepared(claims, "d", {key("c1"): (device("x"), device("y"))}))

    assert [d.device for _, d in claims[key("c1")].device_list()] == ["x", "y"]


def test_a_claim_without_devices_is_prepared_at_once() -> None:
    """DRA-T7."""
    claims = changes.joined({}, A, 1, [fetched("c1")])

    assert claims[key("c1")].is_prepared
    assert unprepare(claims, A) == {}


def test_a_retry_for_a_pod_that_uses_nothing_touches_nobody() -> None:
    """DRA-T4: A is unprepared twice, and a stranger once, while B runs."""
    claims = prepare(prepare({}, A, "c1"), B, "c1")
    once = unprepare(claims, A)

    assert once[key("c1")].pods == {B: 1}
    assert unprepare(once, A) == once
    assert unprepare(once, PodUid("z")) == once
    assert unprepare(once, B) == {}


def test_only_what_failed_is_asked_again() -> None:
    """DRA-T17."""
    claims = unprepare(kept(info("c1", A, d=(), e=())), A, failing=["d"])

    assert list(claims[key("c1")].pods) == [A]
    assert drivers_asked(changes.to_unprepare(claims, A)) == {"d": ["c1"]}
    assert unprepare(claims, A) == {}


def test_a_claim_that_was_given_back_in_part_is_prepared_in_part() -> None:
    claims = unprepare(kept(info("c1", A, d=(), e=())), A, failing=["d"])
    wanted = [fetched("c1", "d", "e")]
    claims = changes.joined(claims, B, 2, wanted)

    assert drivers_asked(changes.to_prepare(claims, wanted)) == {"d": ["c1"], "e": ["c1"]}


def test_the_node_forgets_with_its_boot() -> None:
    """DRA-16; devices stay until they are named again."""
    claims = changes.after_boot(kept(info("c1", A, d=(device("x"),))))

    assert not claims[key("c1")].is_prepared
    assert len(claims[key("c1")].device_list()) == 1


def test_what_was_forgotten_is_taken_from_the_record() -> None:
    recorded = [info("c1", A, B, phase=Phase.IDLE, d=(device("x"),)), info("c2", B, d=())]
    claims = changes.adopted(kept(info("c2", A, d=())), recorded)

    assert claims[key("c1")].drivers["d"].phase is Phase.ASKED
    assert sorted(claims[key("c2")].pods) == [A, B]
    assert claims[key("c2")].drivers["d"].phase is Phase.PREPARED


def test_another_claim_of_the_same_name_is_left_alone() -> None:
    claims = kept(info("c1", A, d=()))

    assert changes.adopted(claims, [info("c1", B, uid="old", d=())]) == claims


NAMES = st.lists(st.sampled_from(["c1", "c2", "c3"]), unique=True, min_size=1)
STEPS = st.lists(
    st.tuples(st.sampled_from([A, B, PodUid("z")]), st.one_of(st.none(), NAMES)), max_size=12
)


@given(STEPS)
def test_no_claim_is_prepared_twice_or_left_behind(
    steps: list[tuple[PodUid, list[str] | None]],
) -> None:
    """Pods come (with claims) and go (None); a driver counts what it holds."""
    claims: Claims = {}
    holds: set[ClaimKey] = set()
    for pod, names in steps:
        if names is None:
            for batch in changes.to_unprepare(changes.without_shared(claims, pod), pod).values():
                assert all(i.key in holds for i in batch)
                holds -= {i.key for i in batch}
            claims = unprepare(claims, pod)
        else:
            asked = [fetched(name, "d") for name in names]
            joined = changes.joined(claims, pod, 1, asked)
            for batch in changes.to_prepare(joined, asked).values():
                assert all(i.key not in holds for i in batch)
                holds |= {i.key for i in batch}
            claims = prepare(claims, pod, *names)
        assert holds == set(claims)
    for pod in (A, B, PodUid("z")):
        claims = unprepare(claims, pod)
    assert claims == {}
