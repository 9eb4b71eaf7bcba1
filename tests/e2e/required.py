"""Leaving out what this machine cannot do, or failing over it where it has to be done."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIRED = "NUMALIGN_E2E_REQUIRED"
"""Set (in CI), an end-to-end test that cannot run has failed."""


def leave_out(reason: str) -> NoReturn:
    """Skip the test with a reason, or fail it where it is required."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{reason} ({REQUIRED} is set)", pytrace=False)
    pytest.skip(reason)


def need(fulfilled: bool, reason: str) -> None:
    """Go on only if something is there."""
    if not fulfilled:
        leave_out(reason)
