"""One provider's part of every admission on paper: what each step makes of the books.

Values and functions over them; the ledger carries out what they say. Phases of one admission:

    (nothing) --opened, tried--> tentative --prepare--> prepared --commit--> final
        ^                            |                      |
        +---------- abort -----------+-------- abort -------+

What a step makes of an admission, where it stands in

    step                  tentative   prepared                            final
    commit                gone        final                               final
    abort                 gone        gone, the books are as before it    final
    abort, keep           final       final                               final
    told: committed       gone        final                               final
    told: not committed   gone        gone, the books are as before it    -
    told: record lost     gone        final                               final
    the process dies      gone        prepared, and in doubt              final

An admission of several pods, a group, is one admission in all of this: its pods are tried one
after the other, they are prepared together, and they end together. Only the pod that came last
can be taken back by itself, while the group is tentative.

Invariants:
- `books` hold what is final and what is prepared, and nothing tentative; they alone are kept;
- at most one part is prepared, and none is opened beside it: so the books before it are those
  without it, and taking it back takes back nothing else;
- in doubt (after a start with a prepared part) nothing is opened and nothing is changed, until
  it was told which admissions were committed (presumed abort: the others are dropped, unless
  the record is lost and nobody can know);
- an admission that is over stays over: a call that comes late for it is refused;
- an admission that was opened and never prepared ends when another one opens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar

from numalign.errors import Unavailable
from numalign.model.ids import AdmissionId, PodUid

S = TypeVar("S")

_OVER_KEPT = 64
"""How many admissions that are over are remembered: far more than can be late at once."""


@dataclass(frozen=True, slots=True)
class Standing(Generic[S]):
    """The books at one moment: the engine's value, and the same as it is kept."""

    state: S
    payload: bytes


@dataclass(frozen=True, slots=True)
class Tentative(Generic[S]):
    """The admission that is open, and the state that its next call is decided on.

    `pod_uid` is the pod of the last call, and `without` the state without it: in a group, the
    one that the pods before it led to.
    """

    admission_id: AdmissionId
    pod_uid: PodUid
    state: S
    without: S


@dataclass(frozen=True, slots=True)
class Prepared(Generic[S]):
    """A part whose outcome is not known here, and the books without it."""

    pod_uid: PodUid
    before: Standing[S]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a prepared part ends; `restore`: the books before it are put back."""

    admission_id: AdmissionId
    restore: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases(Generic[S]):
    """Where every admission stands at the provider called `name`."""

    name: str
    books: Standing[S]
    tentative: Tentative[S] | None = None
    prepared: Mapping[AdmissionId, Prepared[S]] = field(default_factory=dict)
    in_doubt: bool = False
    over: tuple[AdmissionId, ...] = ()

    def require_certainty(self) -> None:
        """Raise Unavailable while it is not known which parts were committed."""
        if self.in_doubt:
            raise Unavailable(
                f"provider {self.name} restarted and waits to be told which "
                "admissions were committed"
            )

    def basis(self, admission_id: AdmissionId) -> S:
        """The state that the admission's next call is decided on."""
        if self.is_open(admission_id):
            return self._tentative().state
        return self.books.state

    def part(self, admission_id: AdmissionId) -> Tentative[S] | Prepared[S] | None:
        """What the admission has taken and is not final."""
        if self.tentative is not None and self.tentative.admission_id == admission_id:
            return self.tentative
        return self.prepared.get(admission_id)

    def is_open(self, admission_id: AdmissionId) -> bool:
        """Whether the admission is the one that is tentative."""
        return self.tentative is not None and self.tentative.admission_id == admission_id

    def opened(self, admission_id: AdmissionId, pod_uid: PodUid) -> Self:
        """With the admission open for the pod; the same value if it was.

        Raises Unavailable in doubt, for an admission that is over, and beside a prepared part.
        """
        self.require_certainty()
        if self.is_open(admission_id):
            return self._turned_to(pod_uid)
        if admission_id in self.prepared or admission_id in self.over:
            raise Unavailable(f"provider {self.name}: admission {admission_id} is over")
        if self.prepared:
            raise Unavailable(
                f"provider {self.name}: the outcome of admission {next(iter(self.prepared))} "
                "has not been told"
            )
        left = self._ended(self.tentative.admission_id) if self.tentative is not None else self
        books = self.books.state
        return replace(left, tentative=Tentative(admission_id, pod_uid, books, books))

    def tried(self, state: S) -> Self:
        """The open admission has come to `state`."""
        now = self._tentative()
        return self._with(Tentative(now.admission_id, now.pod_uid, state, now.without))

    def left(self, admission_id: AdmissionId, pod_uid: PodUid) -> Self:
        """The pod, if it is the last one of the open group, has taken nothing."""
        if not self.is_open(admission_id) or self._tentative().pod_uid != pod_uid:
            return self
        return self.tried(self._tentative().without)

    def prepare(self, payload: bytes) -> Self:
        """The open admission has everything; `payload` is its state as it is kept."""
        tentative = self._tentative()
        part = Prepared(tentative.pod_uid, self.books)
        return replace(
            self,
            books=Standing(tentative.state, payload),
            tentative=None,
            prepared={**self.prepared, tentative.admission_id: part},
        )

    def commit(self, admission_id: AdmissionId) -> Self:
        """The admission is recorded. Unknown ids are not an error."""
        return self._without(admission_id)

    def abort(self, admission_id: AdmissionId) -> Self:
        """The admission is off, and what it took is taken back. Unknown ids are not an error."""
        part = self.prepared.get(admission_id)
        left = self._without(admission_id)
        return left if part is None else replace(left, books=part.before)

    def told(
        self, committed: AbstractSet[AdmissionId], *, record_lost: bool
    ) -> tuple[Self, tuple[Outcome, ...]]:
        """The record names these admissions; also how each prepared part ends over it.

        Those prepared last are settled first. `record_lost`: the record does not name all.
        """
        told = self if self.tentative is None else self._without(self.tentative.admission_id)
        outcomes = []
        for admission_id in reversed(tuple(self.prepared)):
            restore = not stands(admission_id, committed, record_lost=record_lost)
            told = told.abort(admission_id) if restore else told.commit(admission_id)
            outcomes.append(Outcome(admission_id, restore))
        return replace(told, in_doubt=False), tuple(outcomes)

    def standing(self, state: S, payload: bytes) -> Self:
        """The books are these, outside of any admission."""
        return replace(self, books=Standing(state, payload))

    def _turned_to(self, pod_uid: PodUid) -> Self:
        now = self._tentative()
        if now.pod_uid == pod_uid:
            return self
        return self._with(Tentative(now.admission_id, pod_uid, now.state, now.state))

    def _with(self, tentative: Tentative[S]) -> Self:
        # `replace` would do the same in three times the time, ten times in an admission.
        return type(self)(
            name=self.name,
            books=self.books,
            tentative=tentative,
            prepared=self.prepared,
            in_doubt=self.in_doubt,
            over=self.over,
        )

    def _tentative(self) -> Tentative[S]:
        if self.tentative is None:
            raise AssertionError("no admission is open")
        return self.tentative

    def _without(self, admission_id: AdmissionId) -> Self:
        left = self._ended(admission_id)
        if self.is_open(admission_id):
            left = replace(left, tentative=None)
        if admission_id in self.prepared:
            rest = {i: part for i, part in self.prepared.items() if i != admission_id}
            left = replace(left, prepared=rest)
        return left

    def _ended(self, admission_id: AdmissionId) -> Self:
        return replace(self, over=(*self.over, admission_id)[-_OVER_KEPT:])


def stands(
    admission_id: AdmissionId, committed: AbstractSet[AdmissionId], *, record_lost: bool
) -> bool:
    """Whether a part that was prepared is final, as the record knows it.

    Where the record is lost every part stands: a pod that holds too much is released when an
    agent has said what there is, one that holds too little could not be given it back.
    """
    return record_lost or admission_id in committed


def ended(
    held: frozenset[PodUid], active: Iterable[PodUid], *, complete: bool
) -> tuple[PodUid, ...]:
    """The pods that hold something and have ended: none before the picture is `complete`."""
    return tuple(sorted(held.difference(active))) if complete else ()
