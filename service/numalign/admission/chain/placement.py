"""Where handlers of others stand in a chain: in front of one, behind one, in its place, or last.

Separate from the built-in chain, which is the kubelet's, and from who the others are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from numalign.admission.chain.built_in import Chain
from numalign.admission.chain.place import Place, Position
from numalign.admission.chain.question import Handler
from numalign.admission.chain.walk import ALLOCATE_RESOURCES


class NoSuchPlace(ValueError):
    """A place names a handler that the chain does not have, or that cannot be replaced."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A handler of the chain under construction; None is the Topology Manager."""

    name: str
    handler: Handler | None
    place: Place | None = None
    is_soft: bool = False


def with_others(chain: Chain, others: Iterable[tuple[Handler, Place | None]]) -> Chain:
    """The chain with handlers of others in it. Without a place one comes last.

    The last is behind all that can refuse a pod for good, so in front of soft handlers. Of
    several for one place the first stands first. A place may name one of the others that is
    listed earlier, or a handler that one of them replaced. Raises NoSuchPlace.
    """
    steps = _steps(chain)
    names = {step.name: step.name for step in steps}
    for handler, place in others:
        if place is None:
            at = next((i for i, step in enumerate(steps) if step.is_soft), len(steps))
            steps.insert(at, _Step(handler.name, handler))
        else:
            found = _found(names, place)
            at = next(i for i, step in enumerate(steps) if step.name == found)
            step = _Step(handler.name, handler, Place(place.position, found), steps[at].is_soft)
            if place.position is Position.REPLACES:
                steps[at] = step
                names[place.handler] = handler.name
            else:
                steps.insert(_insertion(steps, at, step.place), step)
        names[handler.name] = handler.name
    return _chain(steps)


def only_remote(chain: Chain) -> Chain:
    """The chain without what decides in this process."""

    def remote(handlers: tuple[Handler, ...]) -> tuple[Handler, ...]:
        return tuple(handler for handler in handlers if handler.is_remote)

    return Chain(before=remote(chain.before), behind=remote(chain.behind), soft=remote(chain.soft))


def _found(names: dict[str, str], place: Place) -> str:
    found = names.get(place.handler)
    if found is None:
        raise NoSuchPlace(
            f'there is no handler "{place.handler}" here; there are {", ".join(names)}'
        )
    if place.position is Position.REPLACES:
        if found == ALLOCATE_RESOURCES:
            raise NoSuchPlace(
                f"{ALLOCATE_RESOURCES} allocates, so no admit handler can replace it; its service "
                "is named by endpoints.topology"
            )
        if found != place.handler:
            raise NoSuchPlace(f"{place.handler} is replaced by {found} already")
    return found


def _insertion(steps: Sequence[_Step], at: int, place: Place | None) -> int:
    if place is None or place.position is Position.BEFORE:
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
