"""A node on paper: a Topology Manager and two providers that can be killed between any two steps.

What they decide is the product's (`provider.phases`, `topology.settling`); what is written here
is only the order of their writes and calls. Each operation is a generator that yields the name
of the process that is about to do the next step; what a process has not written is gone with it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from numalign.errors import Unavailable
from numalign.model.ids import AdmissionId, PodUid
from numalign.provider.phases import Phases, Prepared, Standing, ended
from numalign.topology.settling import Told, differences, names_every_pod, told, unclaimed

T = TypeVar("T")
Steps = Generator[str, None, T]

TOPOLOGY = "topology"
PROVIDERS = ("cpu", "memory")
PROCESSES = (TOPOLOGY, *PROVIDERS)
UNITS = (0, 1, 2)
"""What each provider has; a pod is given one of each, and another one by a resize."""

Held = frozenset[tuple[int, PodUid]]
Units = frozenset[int]
Given = Mapping[str, Units]
"""What a pod was given, by provider."""


class Killed(Exception):
    """The process that was at work is not there any more."""


class Full(Exception):
    """There is nothing left: the pod is refused."""


def by_pod(held: Held) -> dict[PodUid, Units]:
    return {uid: frozenset(u for u, holder in held if holder == uid) for _, uid in held}


@dataclass
class Provider:
    """One provider. `kept` and `ways_back` are on its disk."""

    name: str
    kept: Held = frozenset()
    ways_back: dict[AdmissionId, tuple[PodUid, Held]] = field(default_factory=dict)
    instance: int = 0
    phases: Phases[Held] = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Another process begins with what is on the disk."""
        self.instance += 1
        self.phases = Phases(
            name=self.name,
            books=Standing(self.kept, b""),
            prepared={
                name: Prepared(uid, Standing(before, b""))
                for name, (uid, before) in self.ways_back.items()
            },
            in_doubt=bool(self.ways_back),
        )

    def lose(self) -> None:
        """The disk is another one."""
        self.kept, self.ways_back = frozenset(), {}

    def allocate(self, admission_id: AdmissionId, uid: PodUid) -> Steps[Units]:
        yield self.name
        self.phases = self.phases.opened(admission_id, uid)
        state = self.phases.basis(admission_id)
        taken = {unit for unit, _ in state}
        free = [unit for unit in UNITS if unit not in taken]
        if not free:
            raise Full
        state |= {(free[0], uid)}
        self.phases = self.phases.tried(state).prepare(b"")
        yield from self._write()
        return by_pod(state)[uid]

    def commit(self, admission_id: AdmissionId) -> Steps[None]:
        yield self.name
        self.phases = self.phases.commit(admission_id)
        yield from self._write()

    def abort(self, admission_id: AdmissionId) -> Steps[None]:
        yield self.name
        self.phases = self.phases.abort(admission_id)
        yield from self._write()

    def release(self, uids: Iterable[PodUid]) -> Steps[None]:
        yield self.name
        self.phases.require_certainty()
        yield from self._free(uids)

    def reconcile(self, say: Told, give_back: Mapping[PodUid, Units]) -> Steps[dict[PodUid, Units]]:
        """Take the picture over and pods back; what is held then."""
        yield self.name
        self.phases, _ = self.phases.told(frozenset(say.committed), record_lost=say.record_lost)
        yield from self._write()
        held = frozenset(by_pod(self.phases.books.state))
        yield from self._free(ended(held, say.active, complete=say.complete))
        state = self.phases.books.state
        for uid, units in give_back.items():
            if uid not in by_pod(state) and units.isdisjoint(taken for taken, _ in state):
                state |= {(unit, uid) for unit in units}
        self.phases = self.phases.standing(state, b"")
        yield from self._write()
        return by_pod(state)

    def _free(self, uids: Iterable[PodUid]) -> Steps[None]:
        gone = frozenset(uids)
        state = frozenset(each for each in self.phases.books.state if each[1] not in gone)
        self.phases = self.phases.standing(state, b"")
        yield from self._write()

    def _write(self) -> Steps[None]:
        """The file follows the memory, in one transaction."""
        yield self.name
        self.kept = self.phases.books.state
        self.ways_back = {
            name: (part.pod_uid, part.before.state) for name, part in self.phases.prepared.items()
        }
        yield self.name


@dataclass(frozen=True)
class Row:
    """What is recorded of an admitted pod."""

    admission_id: AdmissionId
    given: Given


class Topology:
    """The Topology Manager. `rows` and `whole` are on its disk."""

    def __init__(self, providers: Iterable[Provider]) -> None:
        self.providers = {provider.name: provider for provider in providers}
        self.rows: dict[PodUid, Row] = {}
        self.whole = True
        self.problems = 0
        self._numbers = 0
        self.start()

    def start(self) -> None:
        """Another process begins with what is on the disk."""
        self.known: dict[str, int] = {}
        self.strays: dict[str, frozenset[PodUid]] = {}
        self._outcomes: list[tuple[str, Callable[[], Steps[None]]]] = []

    def lose(self) -> None:
        """The disk is another one."""
        self.rows, self.whole = {}, False

    def hear(self) -> bool:
        """The watches tell of providers that are other processes by now; whether all are known."""
        for provider in self.providers.values():
            if self.known.get(provider.name) != provider.instance:
                self.known.pop(provider.name, None)
        return len(self.known) == len(self.providers)

    def admit(self, uid: PodUid) -> Steps[Given]:
        """What the pod is given. Raises Unavailable where no decision was made, or Full."""
        yield TOPOLOGY
        if uid in self.rows:
            return self.rows[uid].given
        yield from self.ready()
        if any(uid in strays for strays in self.strays.values()):
            return (yield from self._take_over(uid))
        return (yield from self._decide(uid))

    def resize(self, uid: PodUid) -> Steps[Given | None]:
        """One more unit of each for a pod; None if it is not admitted. Raises as `admit`."""
        yield TOPOLOGY
        yield from self.ready()
        return (yield from self._decide(uid)) if uid in self.rows else None

    def _decide(self, uid: PodUid) -> Steps[Given]:
        self._numbers += 1
        admission_id = AdmissionId(f"{self._numbers}")
        given: dict[str, Units] = {}
        try:
            for provider in self.providers.values():
                self._require_same(provider)
                given[provider.name] = yield from self._call(
                    provider, provider.allocate(admission_id, uid)
                )
                self._require_same(provider)
        except (Unavailable, Full):
            for provider in self.providers.values():
                yield from self._tell(provider, provider.abort(admission_id))
            raise
        yield TOPOLOGY
        self.rows[uid] = Row(admission_id, given)
        yield TOPOLOGY
        for provider in self.providers.values():
            self._later(provider, lambda p=provider: p.commit(admission_id))  # type: ignore[misc]
        return given

    def release(self, uid: PodUid) -> Steps[None]:
        """The pod ended; unknown pods are not an error."""
        yield TOPOLOGY
        self.rows.pop(uid, None)
        yield TOPOLOGY
        yield from self._deliver()
        for provider in self.providers.values():
            yield from self._tell(provider, provider.release([uid]))
        yield from self._forget(uid)

    def reconcile(self, named: frozenset[PodUid]) -> Steps[None]:
        """The one owner that there is says which pods it has, all of them."""
        yield from self.ready()
        strays = frozenset(uid for strays in self.strays.values() for uid in strays)
        gone = [
            *unclaimed(strays, [named], complete=True),
            *(uid for uid in self.rows if uid not in named),
        ]
        for uid in gone:
            yield from self.release(uid)

    def ready(self) -> Steps[None]:
        """Every provider has the outcomes of the past and the picture. Raises Unavailable."""
        yield TOPOLOGY
        yield from self._deliver()
        for provider in self.providers.values():
            if provider.name not in self.known:
                yield from self._introduce(provider)
        yield from self._look_whether_whole()

    def _introduce(self, provider: Provider) -> Steps[None]:
        name, instance = provider.name, provider.instance
        say = told(
            {uid: row.admission_id for uid, row in self.rows.items()},
            self.rows.keys(),
            sources_ready=True,
            whole=self.whole,
        )
        held = yield from self._call(provider, provider.reconcile(say, {}))
        found = differences(
            self.rows,
            held,
            lambda row, units: row.given[name] == units,
            placed_before=lambda _: False,
        )
        if found.give_back:
            recorded = {uid: self.rows[uid].given[name] for uid in found.give_back}
            held = yield from self._call(provider, provider.reconcile(say, recorded))
        if provider.instance != instance:
            raise Unavailable(f"{name} restarted while it was told the picture")
        for uid in found.give_back:
            if held.get(uid) != self.rows[uid].given[name]:
                yield TOPOLOGY
                row = self.rows[uid]
                given = {**row.given, name: held.get(uid, frozenset())}
                self.rows[uid] = Row(row.admission_id, given)
                self.problems += 1
        self.strays[name] = found.strays
        self.known[name] = instance

    def _take_over(self, uid: PodUid) -> Steps[Given]:
        given = {
            name: by_pod(provider.phases.books.state).get(uid, frozenset())
            for name, provider in self.providers.items()
        }
        self._numbers += 1
        yield TOPOLOGY
        self.rows[uid] = Row(AdmissionId(f"{self._numbers}"), given)
        yield from self._forget(uid)
        return given

    def _forget(self, uid: PodUid) -> Steps[None]:
        """The pod is a stray no longer."""
        yield TOPOLOGY
        self.strays = {name: strays - {uid} for name, strays in self.strays.items()}
        yield from self._look_whether_whole()

    def _look_whether_whole(self) -> Steps[None]:
        if not self.whole and names_every_pod(self.strays, self.providers):
            yield TOPOLOGY
            self.whole = True

    def _require_same(self, provider: Provider) -> None:
        if self.known.get(provider.name) != provider.instance:
            self.known.pop(provider.name, None)
            raise Unavailable(f"{provider.name} restarted during the admission")

    def _call(self, provider: Provider, call: Steps[T]) -> Steps[T]:
        try:
            return (yield from call)
        except (Killed, Unavailable) as error:
            self.known.pop(provider.name, None)
            raise Unavailable(provider.name) from error

    def _tell(self, provider: Provider, outcome: Steps[None]) -> Steps[None]:
        """Have a provider told something that is true however late it hears of it."""
        try:
            yield from self._call(provider, outcome)
        except Unavailable:
            # It is met again before the next decision, and told the same then.
            return

    def _later(self, provider: Provider, outcome: Callable[[], Steps[None]]) -> None:
        self._outcomes.append((provider.name, outcome))

    def _deliver(self) -> Steps[None]:
        outcomes, self._outcomes = self._outcomes, []
        for name, outcome in outcomes:
            yield from self._tell(self.providers[name], outcome())
