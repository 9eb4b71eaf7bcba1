"""What holds for every test.

Examples of hypothesis have no deadline, and may be slow to make up: how long that takes says more
about the machine than about the code. In CI they are the same in every run; elsewhere each run
tries others.

A command that a test runs in its own process sets up the logs of that process. They are put back
behind each test, so that the next one finds its lines where it looks.

gRPC's asyncio side ends its thread when the last of its objects is collected, and waits for ever
where a call of an earlier test was never finished. Tests leave such calls by killing what would
have answered, so it is kept alive as long as the process, as it is in a service.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator

import pytest
from grpc import aio
from hypothesis import HealthCheck, settings

from numalign.telemetry import logs
from numalign.telemetry.lean_structlog import structlog

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("here", PATIENT)
settings.register_profile("ci", PATIENT, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

aio.init_grpc_aio()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Leave the logs as they were found."""
    before, handlers = structlog.get_config(), list(logging.getLogger().handlers)
    outcome = yield
    if structlog.get_config() != before:
        structlog.configure(**before)
        for logger in logs._loggers:
            vars(logger).pop("bind", None)
        logging.getLogger().handlers[:] = handlers
    return outcome
