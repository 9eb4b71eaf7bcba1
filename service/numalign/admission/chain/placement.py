"""Where handlers of others stand in a chain: in front of one, behind one, in its place, or last.

Separate from the built-in chain, which is the kubelet's, and from who the others are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from numalign.admission.chain.built_in import RESIZE_FEASIBILITY, Chain
from numalign.admission.chain.place import Place, Position
from numalign.admission.chain.question import Handler
from numalign.admission.chain.walk import ALLOCATE_RESOURCES


class Misplaced(ValueError):
    """A handler cannot be put into a chain; `key` is `name` or the position that is at fault."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True)
class _Step:
    """A handler of the chain under construction; None is the Topology Manager."""

    name: str
    handler: Handler | None
    place: Place | None = None
    is_soft: bool = False


class Placement:
    """A chain into which handlers of others are put.

    Without a place one comes last, behind all that can refuse a pod for good, so in front of
    soft handlers. Of several for one place the first stands first. A place may name one of the
    others that was put before, or a handler that one of them replaced.
    """

    def __init__(self, chain: Chain) -> None:
        self._steps = _steps(chain)
        self._names = {step.name: step.name for step in self._steps}

    def put(self, handler: Handler, place: Place | None) -> None:
        """Put a handler at its place. Raises Misplaced."""
        if handler.name in self._names:
            raise Misplaced("name", f'"{handler.name}" is taken')
        if place is None:
            ends = (i for i, step in enumerate(self._steps) if step.is_soft)
            self._steps.insert(next(ends, len(self._steps)), _Step(handler.name, handler))
        else:
            self._put_at(handler, place)
        self._names[handler.name] = handler.name

    def chain(self) -> Chain:
        """The chain as it is."""
        return _chain(self._steps)

    def _put_at(self, handler: Handler, place: Place) -> None:
        found = self._found(place)
        at = next(i for i, step in enumerate(self._steps) if step.name == found)
        place = Place(place.position, found)
        step = _Step(handler.name, handler, place, self._steps[at].is_soft)
        if place.position is Position.REPLACES:
            self._steps[at] = step
            self._names[found] = handler.name
        else:
            self._steps.insert(_insertion(self._steps, at, place), step)

    def _found(self, place: Place) -> str:
        """The name under which the handler that the place names stands in the chain."""
        found = self._names.get(place.handler)
        if found is None:
            raise Misplaced(
                place.position,
                f'there is no handler "{place.handler}"; there are {", ".join(self._names)}',
            )
        if place.position is Position.REPLACES:
            if found == ALLOCATE_RESOURCES:
                raise Misplaced(
                    place.position,
                    f"{ALLOCATE_RESOURCES} allocates, which an admit handler cannot; its service "
                    "is named by endpoints.topology",
                )
            if found != place.handler:
                raise Misplaced(place.position, f"{place.handler} is replaced by {found} already")
        return found


def with_others(chain: Chain, others: Iterable[tuple[Handler, Place | None]]) -> Chain:
    """The chain with handlers of others in it, as Placement puts them. Raises Misplaced."""
    placement = Placement(chain)
    for handler, place in others:
        placement.put(handler, place)
    return placement.chain()


def only_remote(chain: Chain) -> Chain:
    """The chain without what decides in this process."""
    return _only(chain, lambda handler: handler.is_remote)


def resizing_without_node(chain: Chain) -> Chain:
    """What of the chain decides on a resize where no Node object is known."""
    return _only(chain, lambda handler: handler.is_remote or handler.name == RESIZE_FEASIBILITY)


def _only(chain: Chain, is_wanted: Callable[[Handler], bool]) -> Chain:
    return Chain(
        before=tuple(filter(is_wanted, chain.before)),
        behind=tuple(filter(is_wanted, chain.behind)),
        soft=tuple(filter(is_wanted, chain.soft)),
    )


def _insertion(steps: Sequence[_Step], at: int, place: Place) -> int:
    if place.position is Position.BEFORE:
        return at
    at += 1
    while at < len(steps) and steps[at].place == place:
        at += 1
    return at


def _steps(chain: Chain) -> list[_Step]:
    return [
        *(_Step(handler.name, handler) for handler in chain.before),
        _Step(ALLOCATE_RESOURCES, None),
        *(_Step(handler.name, handler) for handler in chain.behind),
        *(_Step(handler.name, handler, is_soft=True) for handler in chain.soft),
    ]


def _chain(steps: Sequence[_Step]) -> Chain:
    at = next(i for i, step in enumerate(steps) if step.handler is None)

    def handlers(part: Sequence[_Step], *, soft: bool) -> tuple[Handler, ...]:
        return tuple(s.handler for s in part if s.handler is not None and s.is_soft is soft)

    return Chain(
        before=handlers(steps[:at], soft=False),
        behind=handlers(steps[at:], soft=False),
        soft=handlers(steps[at:], soft=True),
    )
