"""When a call is made again, and when not."""

from __future__ import annotations

import math
from typing import Any

import pytest
from grpc import StatusCode

from numalign_client.errors import ServiceUnavailable
from numalign_client.pacing import Pacing, Retry

_ERROR = ServiceUnavailable(StatusCode.UNAVAILABLE, "away")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_pauses_grow_up_to_the_longest() -> None:
    pacing = Pacing(Retry(first=1, factor=3, longest=5, jitter=0), math.inf, Clock())

    assert [pacing.pause(_ERROR) for _ in range(4)] == [1, 3, 5, 5]
    assert pacing.tries == 5
    assert pacing.remaining() is None


def test_jitter_only_shortens() -> None:
    retry = Retry(first=1, jitter=0.5)
    pauses = [Pacing(retry, math.inf, Clock()).pause(_ERROR) for _ in range(50)]

    assert all(0.5 <= pause <= 1 for pause in pauses)
    assert len(set(pauses)) > 1


def test_no_pause_goes_beyond_the_deadline() -> None:
    clock = Clock()
    pacing = Pacing(Retry(first=1, factor=1, jitter=0), 2.5, clock)

    assert pacing.pause(_ERROR) == 1
    clock.now += 1
    assert pacing.remaining() == 1.5
    assert pacing.pause(_ERROR) == 1
    clock.now += 1
    with pytest.raises(ServiceUnavailable, match="away"):
        pacing.pause(_ERROR)
    clock.now += 10
    assert pacing.remaining() == 0


def test_never_again() -> None:
    with pytest.raises(ServiceUnavailable):
        Pacing(Retry(first=math.inf), math.inf, Clock()).pause(_ERROR)


@pytest.mark.parametrize(
    "given",
    [{"first": 0}, {"first": -1}, {"longest": 0}, {"factor": 0.5}, {"jitter": 1}, {"jitter": -0.1}],
)
def test_numbers_that_make_no_sense(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Retry(**given)
