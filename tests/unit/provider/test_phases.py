"""One provider's part of every admission on paper: every step in every standing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from numalign.errors import Unavailable
from numalign.model.ids import AdmissionId, PodUid
from numalign.provider.phases import Outcome, Phases, Prepared, Standing, stands

Holders = frozenset[AdmissionId]


def holders(names: str) -> Holders:
    return frozenset(AdmissionId(name) for name in names)


IDS = tuple(sorted(holders("abc")))
EMPTY: Phases[Holders] = Phases(name="paper", books=Standing(frozenset(), b""))


def payload(state: Holders) -> bytes:
    return "".join(sorted(state)).encode()


@dataclass(frozen=True)
class Walk:
    """A provider, and what the Topology Manager's record names: pods are called as admissions."""

    phases: Phases[Holders]
    recorded: Holders = frozenset()
    left_over: Holders = frozenset()

    def key(self) -> object:
        """Equal for walks from which the same can happen."""
        now = self.phases
        prepared = tuple((i, part.before.state) for i, part in now.prepared.items())
        tried = None if now.tentative is None else (now.tentative.pod_uid, now.tentative.state)
        shape = (now.books.state, tried, prepared, now.in_doubt, frozenset(now.over))
        return shape, self.recorded, self.left_over

    def steps(self) -> Iterator[Walk]:
        """Everything that can happen next, to the provider or in the record."""
        now = self.phases
        for name in IDS:
            taken = frozenset({name})
            if name not in self.recorded and not taken & now.books.state:
                yield from self._opened(name, taken)
            if now.is_open(name) and taken <= now.basis(name):
                yield self._with(now.prepare(payload(now.basis(name))))
            if name in now.prepared:
                yield replace(self, recorded=self.recorded | taken)
            if name in self.recorded:
                yield self._with(now.commit(name))
            else:
                yield self._with(now.abort(name))
                if now.part(name) is not None:
                    yield self._kept(name)
        told, outcomes = now.told(self.recorded, record_lost=False)
        assert {o.admission_id: o.restore for o in outcomes} == {
            name: name not in self.recorded for name in now.prepared
        }
        yield self._with(told)
        yield self._with(restarted(now))

    def _opened(self, name: AdmissionId, taken: Holders) -> Iterator[Walk]:
        now = self.phases
        refused = now.in_doubt or bool(now.prepared) or name in now.over
        if refused and not now.is_open(name):
            with pytest.raises(Unavailable):
                now.opened(name, PodUid(name))
            return
        opened = now.opened(name, PodUid(name))
        yield self._with(opened)
        yield self._with(opened.tried(opened.basis(name) | taken))

    def _kept(self, name: AdmissionId) -> Walk:
        now = self.phases
        tried = now.basis(name)
        kept = now.commit(name)
        if now.is_open(name):
            kept = kept.standing(tried, payload(tried))
        left = self.left_over | (kept.books.state & {name})
        return replace(self, phases=kept, left_over=left)

    def _with(self, phases: Phases[Holders]) -> Walk:
        return replace(self, phases=phases)

    def check(self) -> None:
        """The invariants."""
        now = self.phases
        waiting = set(now.prepared)
        assert len(waiting) <= 1
        assert now.tentative is None or not waiting
        assert now.books.state == self.recorded | self.left_over | waiting
        assert now.books.payload == payload(now.books.state)
        told, _ = now.told(self.recorded, record_lost=False)
        assert not told.in_doubt
        assert told.books.state == self.recorded | self.left_over
        told, _ = now.told(self.recorded, record_lost=True)
        assert told.books.state == now.books.state


def restarted(now: Phases[Holders]) -> Phases[Holders]:
    """What is on disk is there again."""
    return Phases(
        name=now.name, books=now.books, prepared=now.prepared, in_doubt=bool(now.prepared)
    )


def test_every_step_in_every_standing_keeps_the_invariants() -> None:
    seen = {Walk(EMPTY).key()}
    ahead = [Walk(EMPTY)]
    while ahead:
        for step in ahead.pop().steps():
            if step.key() not in seen:
                step.check()
                seen.add(step.key())
                ahead.append(step)
    assert len(seen) > 500


def test_an_abort_puts_back_just_what_was_there() -> None:
    opened = EMPTY.opened(IDS[0], PodUid("a")).tried(holders("a"))
    prepared = opened.prepare(b"a")
    assert prepared.prepared == {IDS[0]: Prepared(PodUid("a"), EMPTY.books)}
    assert prepared.abort(IDS[0]).books is EMPTY.books


@pytest.mark.parametrize(
    ("step", "text"),
    [
        pytest.param(lambda now: now.opened(IDS[1], PodUid("b")), "outcome of admission a", id="b"),
        pytest.param(lambda now: now.opened(IDS[0], PodUid("a")), "admission a is over", id="a"),
        pytest.param(
            lambda now: restarted(now).opened(IDS[1], PodUid("b")), "waits to be told", id="doubt"
        ),
    ],
)
def test_nothing_is_opened_beside_a_prepared_part(
    step: Callable[[Phases[Holders]], object], text: str
) -> None:
    prepared = EMPTY.opened(IDS[0], PodUid("a")).tried(holders("a")).prepare(b"a")
    with pytest.raises(Unavailable, match=f"provider paper.*{text}"):
        step(prepared)


def test_parts_of_an_older_file_end_from_the_last_one_on() -> None:
    # Files may hold several: each is the way back to the one before it.
    first = Prepared(PodUid("a"), Standing(holders(""), b""))
    second = Prepared(PodUid("b"), Standing(holders("a"), b"a"))
    found = Phases(
        name="paper",
        books=Standing(holders("ab"), b"ab"),
        prepared={IDS[0]: first, IDS[1]: second},
        in_doubt=True,
    )
    told, outcomes = found.told({IDS[0]}, record_lost=False)
    assert told.books.state == holders("a")
    assert outcomes == (Outcome(IDS[1], restore=True), Outcome(IDS[0], restore=False))


@pytest.mark.parametrize(
    ("committed", "record_lost", "final"),
    [
        pytest.param("a", False, True, id="recorded"),
        pytest.param("b", False, False, id="presumed-aborted"),
        pytest.param("", True, True, id="nobody-knows"),
    ],
)
def test_what_stands(committed: str, record_lost: bool, final: bool) -> None:
    assert stands(IDS[0], holders(committed), record_lost=record_lost) is final
