"""What is counted of claims and drivers (DRA-40, DRA-41), so that its names stand in one place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from numalign.dra.values import Claims
from numalign.telemetry.metrics import Metrics

_ANY = "<any>"
_OK = "OK"
_GO_CODES = {"CANCELLED": "Canceled"}


class ClaimObserver:
    """Counts where metrics are served."""

    def __init__(self, metrics: Metrics) -> None:
        self._operations = metrics.histogram("dra_operations_duration_seconds")
        self._calls = metrics.histogram("dra_grpc_operations_duration_seconds")
        self._in_use = metrics.gauge("dra_resource_claims_in_use")
        self._shown: set[str] = set()

    @contextmanager
    def operation(self, name: str) -> Iterator[None]:
        """Time one operation on a pod; it failed if it raises."""
        began = time.monotonic()
        failed = True
        try:
            yield
            failed = False
        finally:
            labels = self._operations.labels(name, "true" if failed else "false")
            labels.observe(time.monotonic() - began)

    def called(self, driver: str, method: str, code: str, seconds: float) -> None:
        """A driver was called; `code` is gRPC's name, such as `DEADLINE_EXCEEDED`."""
        shown = code if code == _OK else _GO_CODES.get(code, code.title().replace("_", ""))
        self._calls.labels(driver, method, shown).observe(seconds)

    def count(self, claims: Claims) -> None:
        """Show how many claims are prepared, of all drivers and of each that ever had any."""
        prepared = [info for info in claims.values() if info.is_prepared]
        self._shown.update(driver for info in prepared for driver in info.drivers)
        self._in_use.labels(_ANY).set(len(prepared))
        for driver in self._shown:
            self._in_use.labels(driver).set(sum(driver in info.drivers for info in prepared))
