"""Record and books on paper: what each has to do so that both say the same.

The record names the pods that are admitted; the books of each provider hold its part of them, in
the phases of `provider.phases`. One admission, over all providers:

    reserved     every provider has taken its part, tentatively
    prepared     every provider has it in its file, together with the way back
    committed    the record names the pod, on disk: nothing else decides whether it is admitted
    released     the record names it no more, on disk; then each provider frees its part

A group of pods is one admission: it is prepared and committed as a whole, and the record names
each of its pods under the group's id and a number.

Whatever is interrupted in between is settled when the Topology Manager meets a provider the next
time, before anything else is decided. What becomes of the provider's part of a pod then:

    the part is          the record names the pod              it does not
    tentative            gone, and taken back from the record  gone
    prepared             final                                 gone; record lost: final, a stray
    final, as recorded   stays                                 -
    final                as it can be taken back               released; record lost: a stray
    not there            as it can be taken back               -

A file that is not synced can end earlier after a loss of power; then parts are not there.
What can be taken back is what is free and exists; what cannot be, the record loses as well, with
a problem that names it. A stray is held until an agent has named or released it.

Invariants:
- no CPU is in two exclusive sets and none is both exclusive and shared, and memory books add up:
  books are exchanged as a whole, each made from the one before by an engine, and a part is only
  taken back over books from which everything that does not stand is gone;
- a pod is wholly admitted or holds nothing: once every provider was met, the books hold what the
  record says, and of no other pod anything but strays;
- an answered Admit survives: it is answered when it is committed, and nothing but a release, and
  what no machine can give back, takes from a record what it names;
- a release frees each thing once: the record forgets first, so what is freed over it is freed
  from books that still held it, and a second release finds no record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

from numalign.model.ids import AdmissionId, PodUid

R = TypeVar("R")
H = TypeVar("H")


_IN_GROUP = "."


def in_group(group: AdmissionId, number: int) -> AdmissionId:
    """The id under which the record names a pod of a group; no two pods have the same."""
    return AdmissionId(f"{group}{_IN_GROUP}{number}")


def decided_under(recorded: AdmissionId) -> AdmissionId:
    """The id under which providers know the admission of a recorded pod: its group's, if any."""
    return AdmissionId(recorded.partition(_IN_GROUP)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a provider is told when it is met.

    `complete`: pods that are not `active` have ended. `record_lost`: the record does not name
    every pod, so that prepared parts and unknown pods are kept.
    """

    active: tuple[PodUid, ...]
    committed: tuple[AdmissionId, ...]
    complete: bool
    record_lost: bool


def told(
    recorded: Mapping[PodUid, AdmissionId],
    active: AbstractSet[PodUid],
    *,
    sources_ready: bool,
    whole: bool,
) -> Told:
    """What the record says of outcomes and of pods; `whole`: it names every pod that there is."""
    return Told(
        active=tuple(uid for uid in recorded if uid in active),
        committed=tuple(dict.fromkeys(map(decided_under, recorded.values()))),
        complete=sources_ready and whole,
        record_lost=not whole,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Where a provider that was met says something else than the record.

    `give_back` are recorded pods that it takes back what the record says for, in the order of
    the record; `strays` are pods that only the provider knows.
    """

    give_back: tuple[PodUid, ...]
    strays: frozenset[PodUid]


def differences(
    recorded: Mapping[PodUid, R],
    held: Mapping[PodUid, H],
    agrees: Callable[[R, H | None], bool],
    *,
    placed_before: Callable[[R], bool],
) -> Differences:
    """Compare the record with what a provider holds (None: nothing) of each pod.

    Pods that were `placed_before`, under another configuration, are given back in any case: only
    so is it said what they lack of what they would get under this one.
    """
    return Differences(
        give_back=tuple(
            uid
            for uid, record in recorded.items()
            if placed_before(record) or not agrees(record, held.get(uid))
        ),
        strays=frozenset(held.keys() - recorded.keys()),
    )


def names_every_pod(met: Mapping[str, Collection[PodUid]], providers: Iterable[str]) -> bool:
    """Whether a record that was lost is whole again.

    `met` has the strays of each provider that was met; it is whole when all of `providers` were,
    and none of them has any.
    """
    return all(name in met for name in providers) and not any(met.values())


def unclaimed(
    strays: frozenset[PodUid], claims: Iterable[AbstractSet[PodUid]], *, complete: bool
) -> tuple[PodUid, ...]:
    """The strays that have ended: no owner has one of them in its list of pods.

    None before the list of the owner that speaks is `complete`.
    """
    if not complete:
        return ()
    return tuple(sorted(strays.difference(*claims)))
