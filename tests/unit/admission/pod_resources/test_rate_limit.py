from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numalign.admission.pod_resources.rate_limit import BURST, CALLS_PER_SECOND, TokenBucket


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_and_then_one_each_hundredth_of_a_second() -> None:
    clock = Clock()
    bucket = TokenBucket(clock)

    assert [bucket.take() for _ in range(12)] == [True] * 10 + [False] * 2
    clock.now += 0.0101
    assert [bucket.take() for _ in range(2)] == [True, False]
    clock.now += 3600
    assert [bucket.take() for _ in range(11)] == [True] * 10 + [False]


@given(st.lists(st.floats(0, 0.05), min_size=1, max_size=200))
def test_never_more_than_the_burst_and_the_rate(pauses: list[float]) -> None:
    clock = Clock()
    bucket = TokenBucket(clock)
    passed = 0
    for pause in pauses:
        clock.now += pause
        passed += bucket.take()

    assert passed <= BURST + CALLS_PER_SECOND * sum(pauses) + 1e-6
