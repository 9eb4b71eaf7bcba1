"""The agent's commands as a user meets them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.agent.made import pod

from numalign.telemetry.metrics import Metrics
from numalign_agent.cli.main import cli
from numalign_agent.journal.journal import Journal
from numalign_agent.journal.rows import Problem
from numalign_agent.metrics import AGENT
from numalign_agent.status.port import EventType


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state directory of an agent that decided on two pods."""

    async def decide() -> None:
        journal = Journal.open(tmp_path, 100, Metrics(AGENT, enabled=False))
        await journal.decided(pod("web", source="file"), "admitted")
        await journal.decided(pod("big"), "rejected", reason="OutOfcpu", message="too few")
        container = {"name": "c", "ready": True, "restartCount": 2}
        journal.set_status(pod("web"), {"phase": "Running", "containerStatuses": [container]})
        journal.event(pod("web"), EventType.NORMAL, "Started", "Started container c")
        await journal.problems([Problem("file", "/m/bad.yaml", "no pod")])
        await journal.close()

    asyncio.run(decide())
    return tmp_path


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_pods(state: Path) -> None:
    shown = call("pods", "--state-directory", str(state))

    assert shown.exit_code == 0
    assert rows(shown.output) == [
        ["pod", "source", "decision", "phase", "ready", "restarts", "why"],
        ["default/web", "file", "admitted", "Running", "1/1", "2"],
        ["default/big", "api", "rejected", "0", "OutOfcpu:", "too", "few"],
        ["file:", "/m/bad.yaml:", "no", "pod"],
    ]


def test_pods_for_programs(state: Path) -> None:
    shown = call("-o", "json", "pods", "--state-directory", str(state))
    document: dict[str, Any] = json.loads(shown.output)

    assert [pod["name"] for pod in document["pods"]] == ["web", "big"]
    assert document["pods"][0]["status"]["phase"] == "Running"
    assert document["problems"] == [{"source": "file", "place": "/m/bad.yaml", "why": "no pod"}]


def test_the_journal(state: Path) -> None:
    shown = call("journal", "--state-directory", str(state))

    assert [line[1:4] for line in rows(shown.output)[1:]] == [
        ["default/web", "decision", "admitted"],
        ["default/big", "decision", "rejected"],
        ["default/web", "event", "Normal"],
    ]


def test_the_journal_of_one_pod_for_programs(state: Path) -> None:
    shown = call(
        "journal", "--state-directory", str(state), "--pod", "default/web", "-n", "1", "-o", "json"
    )

    (entry,) = json.loads(shown.output)["entries"]
    assert (entry["reason"], entry["message"]) == ("Started", "Started container c")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("pods", "--state-directory", "/no/where"), 1, "journal /no/where/journal.db: there is"),
        (("journal", "-n", "0"), 2, "0 is not in the range x>=1"),
        (("run", "--runner", "docker"), 2, "'docker' is not one of 'process', 'recorder'"),
        (("run", "--address", "here"), 1, "numalign.agent.address: must be host:port"),
        (("run", "--config", "/no/such.yaml"), 1, "/no/such.yaml: cannot be read"),
        (("run", "--state-directory", "/proc/x"), 1, "state directory /proc/x"),
    ],
)
def test_mistakes_are_lines(arguments: tuple[str, ...], code: int, message: str) -> None:
    shown = call(*arguments)

    assert shown.exit_code == code
    assert message in shown.output
    assert "Traceback" not in shown.output


def test_every_command_has_help() -> None:
    listed = call("--help").output
    for name in ("run", "pods", "journal"):
        assert f"  {name} " in listed
        shown = call(name, "--help")
        assert shown.exit_code == 0
        assert "Examples:" in shown.output
