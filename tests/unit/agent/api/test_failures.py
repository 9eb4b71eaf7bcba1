"""What an API server does not do is told with the way out."""

from __future__ import annotations

import pytest

from numalign_agent.api.errors import ApiError, Refused, Unreachable
from numalign_agent.api.failures import explained


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(
            Unreachable("GET /api/v1/pods: Cannot connect to host"),
            "GET /api/v1/pods: Cannot connect to host; it is asked again by itself. If this goes "
            "on, see that the API server is up, and that this is its address",
            id="away",
        ),
        pytest.param(
            Refused(401, "Unauthorized", "Unauthorized"),
            "401 Unauthorized: Unauthorized: the API server does not know these credentials",
            id="unknown credentials",
        ),
        pytest.param(
            Refused(403, "Forbidden", 'pods is forbidden: User "u" cannot list resource "pods"'),
            '403 Forbidden: pods is forbidden: User "u" cannot list resource "pods": bind this '
            "account to a ClusterRole with that right",
            id="missing right",
        ),
        pytest.param(
            Refused(429, "TooManyRequests", "disruption budget"),
            "429 TooManyRequests: disruption budget",
            id="said by itself",
        ),
        pytest.param(ApiError("no list"), "no list", id="anything else"),
    ],
)
def test_the_way_out(error: ApiError, said: str) -> None:
    assert explained(error) == said
