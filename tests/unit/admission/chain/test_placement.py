"""Where handlers of others stand in a chain."""

from __future__ import annotations

import pytest

from numalign.admission.chain.built_in import Chain
from numalign.admission.chain.place import Place, Position
from numalign.admission.chain.placement import Misplaced, only_remote, with_others
from numalign.admission.chain.question import Answer, Handler, Question
from numalign.admission.handlers.verdict import ADMITTED

BEFORE, AFTER, REPLACES = Position.BEFORE, Position.AFTER, Position.REPLACES


async def _admit(_: Question) -> Answer:
    return Answer(ADMITTED)


def _own(name: str) -> Handler:
    return Handler(name, _admit)


def _other(name: str, place: Place | None = None) -> tuple[Handler, Place | None]:
    return Handler(name, _admit, is_remote=True), place


CHAIN = Chain(
    before=(_own("a"), _own("b")), behind=(_own("c"), _own("d")), soft=(_own("e"), _own("f"))
)


def _drawn(chain: Chain) -> str:
    parts = (chain.before, chain.behind, chain.soft)
    return " | ".join(" ".join(handler.name for handler in part) for part in parts)


@pytest.mark.parametrize(
    ("others", "drawn"),
    [
        pytest.param([], "a b | c d | e f", id="nobody"),
        pytest.param([_other("x")], "a b | c d x | e f", id="last of those that refuse"),
        pytest.param([_other("x"), _other("y")], "a b | c d x y | e f", id="several, as listed"),
        pytest.param([_other("x", Place(BEFORE, "a"))], "x a b | c d | e f", id="first"),
        pytest.param([_other("x", Place(AFTER, "b"))], "a b x | c d | e f", id="behind b"),
        pytest.param(
            [_other("x", Place(BEFORE, "topology-manager"))],
            "a b x | c d | e f",
            id="in front of the Topology Manager",
        ),
        pytest.param(
            [_other("x", Place(AFTER, "topology-manager"))],
            "a b | x c d | e f",
            id="behind the Topology Manager",
        ),
        pytest.param(
            [_other("x", Place(AFTER, "c")), _other("y", Place(AFTER, "c"))],
            "a b | c x y d | e f",
            id="several behind one, as listed",
        ),
        pytest.param(
            [_other("x", Place(BEFORE, "c")), _other("y", Place(BEFORE, "c"))],
            "a b | x y c d | e f",
            id="several in front of one, as listed",
        ),
        pytest.param([_other("x", Place(REPLACES, "c"))], "a b | x d | e f", id="in its place"),
        pytest.param(
            [_other("x", Place(REPLACES, "c")), _other("y", Place(AFTER, "c"))],
            "a b | x y d | e f",
            id="behind one that is replaced",
        ),
        pytest.param(
            [_other("x"), _other("y", Place(BEFORE, "x"))],
            "a b | c d y x | e f",
            id="in front of another one's",
        ),
        pytest.param([_other("x", Place(AFTER, "e"))], "a b | c d | e x f", id="among soft ones"),
        pytest.param([_other("x", Place(REPLACES, "f"))], "a b | c d | e x", id="a soft one"),
    ],
)
def test_places(others: list[tuple[Handler, Place | None]], drawn: str) -> None:
    assert _drawn(with_others(CHAIN, others)) == drawn


@pytest.mark.parametrize(
    ("others", "message"),
    [
        pytest.param(
            [_other("x", Place(AFTER, "z"))],
            'no handler "z"; there are a, b, topology-manager, c, d, e, f',
            id="unknown",
        ),
        pytest.param(
            [_other("x", Place(AFTER, "y")), _other("y")],
            'no handler "y"',
            id="one that is listed later",
        ),
        pytest.param(
            [_other("x", Place(REPLACES, "topology-manager"))],
            "topology-manager allocates",
            id="the Topology Manager",
        ),
        pytest.param(
            [_other("x", Place(REPLACES, "c")), _other("y", Place(REPLACES, "c"))],
            "c is replaced by x already",
            id="twice",
        ),
        pytest.param([_other("a")], '"a" is taken', id="a name of the chain's"),
        pytest.param([_other("x"), _other("x")], '"x" is taken', id="one name twice"),
    ],
)
def test_places_that_are_not_there(
    others: list[tuple[Handler, Place | None]], message: str
) -> None:
    with pytest.raises(Misplaced, match=message):
        with_others(CHAIN, others)


def test_only_those_of_others() -> None:
    chain = with_others(CHAIN, [_other("x", Place(BEFORE, "a")), _other("y")])

    assert _drawn(only_remote(chain)) == "x | y | "
