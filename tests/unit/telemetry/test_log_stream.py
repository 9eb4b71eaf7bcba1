"""A log that cannot be written fails nobody, and says so afterwards."""

from __future__ import annotations

import errno
import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from numalign.telemetry.log_stream import LogStream
from numalign.telemetry.logs import configure_logs, get_logger


class FullDisk(io.StringIO):
    """A stream that takes nothing while it is full."""

    full = False

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


@pytest.fixture(autouse=True)
def _undo() -> Iterator[None]:
    handlers = list(logging.getLogger().handlers)
    yield
    logging.getLogger().handlers[:] = handlers
    structlog.reset_defaults()


def test_lost_lines_are_counted_and_told() -> None:
    stream = FullDisk()
    log = LogStream(stream, lambda count: f"{count} lost")
    log.write("a\n")
    stream.full = True
    log.write("b\n")
    log.write("c\n")
    stream.full = False
    log.write("d\n")
    log.write("e\n")

    assert stream.getvalue().splitlines() == ["a", "2 lost", "d", "e"]


@pytest.mark.parametrize("format_", ["json", "console"])
def test_whoever_logs_goes_on(format_: str) -> None:
    stream = FullDisk()
    configure_logs(format_, "info", stream)
    logger = get_logger("topology")
    stream.full = True
    logger.error("first")
    stream.full = False
    logger.info("second")

    lost, second = stream.getvalue().splitlines()
    assert "lines could not be written" in lost
    assert "second" in second
    if format_ == "json":
        assert json.loads(lost)["count"] == 1
