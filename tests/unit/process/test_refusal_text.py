"""What prevents a start reads the same as it was said."""

from __future__ import annotations

import pytest

from numalign.errors import ConfigError, NumalignError, StartError
from numalign.process.refusal_text import read_refusal, refusal_lines


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        pytest.param(
            StartError("cpu_manager", 'unknown policy: "x"', setting="cpuManagerPolicy"),
            ['numalign: cpuManagerPolicy: cpu_manager: unknown policy: "x"'],
            id="setting of a manager",
        ),
        pytest.param(
            StartError("memory_manager_start", "could not restore: a: b"),
            ["numalign: memory_manager_start: could not restore: a: b"],
            id="state of a manager",
        ),
        pytest.param(
            ConfigError("numalign.queueDepth: must be at least 1\nlog: wrong"),
            ["numalign: numalign.queueDepth: must be at least 1", "numalign: log: wrong"],
            id="several settings",
        ),
    ],
)
def test_said_and_read(error: NumalignError, lines: list[str]) -> None:
    said = refusal_lines(error)
    read = read_refusal(said)

    assert list(said) == lines
    assert type(read) is type(error)
    assert str(read) == str(error)
    if isinstance(error, StartError):
        assert isinstance(read, StartError)
        assert (read.stage, read.setting) == (error.stage, error.setting)


def test_nothing_was_said() -> None:
    assert "without a word" in str(read_refusal([]))
