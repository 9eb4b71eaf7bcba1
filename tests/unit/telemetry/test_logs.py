"""What a log line looks like."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import structlog

from numalign.telemetry.logs import configure_logs, get_logger, log_fields
from numalign.telemetry.trace_context import TraceContext, current_trace


@pytest.fixture(autouse=True)
def _undo() -> Iterator[None]:
    handlers = list(logging.getLogger().handlers)
    yield
    logging.getLogger().handlers[:] = handlers
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line() -> None:
    stream = io.StringIO()
    configure_logs("json", "info", stream)
    get_logger("topology").info("admitted", reason="")
    (line,) = lines(stream)
    assert datetime.fromisoformat(line.pop("timestamp")).tzinfo is not None
    assert line == {"event": "admitted", "level": "info", "component": "topology", "reason": ""}


def test_a_console_line() -> None:
    stream = io.StringIO()
    configure_logs("console", "info", stream)
    get_logger("topology").warning("provider ignored", provider="cpu")
    text = stream.getvalue()
    assert "warning" in text
    assert "provider ignored" in text
    assert "provider=cpu" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("level", "written"),
    [
        pytest.param("debug", ["d", "i", "w", "e"], id="debug"),
        pytest.param("info", ["i", "w", "e"], id="info"),
        pytest.param("warning", ["w", "e"], id="warning"),
        pytest.param("error", ["e"], id="error"),
    ],
)
def test_levels(level: str, written: list[str]) -> None:
    stream = io.StringIO()
    configure_logs("json", level, stream)
    log = get_logger("x")
    log.debug("d")
    log.info("i")
    log.warning("w")
    log.error("e")
    assert [line["event"] for line in lines(stream)] == written


async def test_fields_of_a_request_are_on_its_lines_only() -> None:
    stream = io.StringIO()
    configure_logs("json", "info", stream)
    log = get_logger("x")

    async def admit(pod: str) -> None:
        with log_fields(pod=pod, admission_id=f"a-{pod}"):
            await asyncio.sleep(0)
            log.info("hints")

    await asyncio.gather(admit("1"), admit("2"))
    log.info("idle")
    found = [(r["event"], r.get("pod"), r.get("admission_id")) for r in lines(stream)]
    assert sorted(found, key=str) == [
        ("hints", "1", "a-1"),
        ("hints", "2", "a-2"),
        ("idle", None, None),
    ]


def test_the_trace_is_on_every_line() -> None:
    stream = io.StringIO()
    configure_logs("json", "info", stream)
    trace = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    token = current_trace.set(trace)
    get_logger("x").info("in")
    current_trace.reset(token)
    get_logger("x").info("out")
    assert [line.get("trace_id") for line in lines(stream)] == [trace.trace_id, None]


def test_exceptions_have_their_traceback() -> None:
    stream = io.StringIO()
    configure_logs("json", "info", stream)
    try:
        1 // int("0")
    except ZeroDivisionError:
        get_logger("x").exception("failed")
    (line,) = lines(stream)
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ZeroDivisionError: integer division or modulo by zero")


def test_lines_of_libraries_come_out_alike() -> None:
    stream = io.StringIO()
    configure_logs("json", "info", io.StringIO())
    configure_logs("json", "info", stream)
    logging.getLogger("asyncio").info("not this")
    logging.getLogger("asyncio").error("Task exception %s", "lost", exc_info=ValueError("bad"))
    (line,) = lines(stream)
    assert line["component"] == "asyncio"
    assert line["event"] == "Task exception lost"
    assert "ValueError: bad" in line["exception"]


def test_what_the_configuration_does_not_allow() -> None:
    with pytest.raises(KeyError):
        configure_logs("json", "loud")
    with pytest.raises(ValueError, match='unknown log format "xml"'):
        configure_logs("xml", "info")


@pytest.mark.parametrize(
    ("first", "loaded"),
    [
        pytest.param("", "False", id="service"),
        pytest.param("import rich.console; ", "True", id="command-line"),
    ],
)
def test_rich_is_not_loaded_for_logs(first: str, loaded: str) -> None:
    script = (
        f"{first}import numalign.telemetry.logs, sys; print('rich' in sys.modules); "
        "import rich.console"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
    )
    assert result.stdout.strip() == loaded
