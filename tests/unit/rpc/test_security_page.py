"""docs/security.md names the tests that hold it: they are there, and so are the defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from numalign.config.settings import LimitSettings
from numalign.rpc.channel import MESSAGE_BYTES, METADATA_BYTES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


@pytest.mark.parametrize(("file", "test"), NAMED, ids=[test for _, test in NAMED])
def test_named_tests_are_there(file: str, test: str) -> None:
    assert re.search(
        rf"^(async )?def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE
    )


def test_many_are_named() -> None:
    assert len(NAMED) > 15


@pytest.mark.parametrize(
    "row",
    [
        f"| {MESSAGE_BYTES >> 20} MiB |",
        f"| {METADATA_BYTES >> 10} KiB |",
        f"`limits.connections` {LimitSettings().connections} |",
        f"`limits.calls` {LimitSettings().calls} |",
        f"`limits.handshakeTimeout` {LimitSettings().handshake_timeout:g} s |",
        f"`limits.requestTimeout` {LimitSettings().request_timeout:g} s |",
        f"`limits.callTimeout` {LimitSettings().call_timeout:g} s |",
        f"`limits.streamIdleTimeout` {LimitSettings().stream_idle_timeout / 60:g} min |",
    ],
)
def test_the_defaults_are_those_of_the_services(row: str) -> None:
    assert row in PAGE
