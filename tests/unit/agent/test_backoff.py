from __future__ import annotations

from numalign_agent.backoff import Backoff


def test_it_doubles_up_to_a_bound_and_begins_anew() -> None:
    backoff = Backoff(1.0, 20.0)

    assert [backoff.failed() for _ in range(7)] == [1, 2, 4, 8, 16, 20, 20]
    backoff.succeeded()
    assert backoff.failed() == 1
