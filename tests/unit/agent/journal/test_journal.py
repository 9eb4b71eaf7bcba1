"""The journal: what it remembers, what it survives, and what a full disk does to it."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.agent.made import pod

from numalign.errors import StateError
from numalign.telemetry.metrics import Metrics
from numalign_agent.journal import journal as module
from numalign_agent.journal import store as store_module
from numalign_agent.journal.journal import FILE_NAME, Journal, reading
from numalign_agent.journal.rows import Problem
from numalign_agent.journal.store import JournalStore
from numalign_agent.metrics import AGENT
from numalign_agent.status.port import EventType


@asynccontextmanager
async def journal_in(directory: Path, keep: int = 100) -> AsyncIterator[Journal]:
    journal = Journal.open(directory, keep, Metrics(AGENT, enabled=True))
    running = asyncio.create_task(journal.run())
    try:
        yield journal
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await journal.close()


async def test_decisions_and_statuses_are_there_again(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal.decided(pod("a", source="file"), "admitted")
        await journal.decided(pod("b"), "rejected", handler="h", reason="R", message="m")
        await journal.decided(pod("c"), "admitted")
        await journal.decided(pod("a", source="file"), "admitted")  # asked about again
        journal.set_status(pod("a"), {"phase": "Succeeded"})
        journal.event(pod("a"), EventType.NORMAL, "Started", "it runs")

    with reading(tmp_path) as store:
        rows, entries = {row.name: row for row in store.pods()}, store.entries(10)
    assert [(row.name, row.rank, row.verdict) for row in rows.values()] == [
        ("a", 1, "admitted"),
        ("c", 2, "admitted"),
        ("b", None, "rejected"),
    ]
    assert (rows["a"].source, rows["a"].is_over, rows["a"].is_rejected) == ("file", True, False)
    assert (rows["b"].reason, rows["b"].message, rows["b"].is_rejected) == ("R", "m", True)
    assert [(e.kind, e.type, e.pod, e.reason) for e in entries] == [
        ("decision", "admitted", "default/a", ""),
        ("decision", "rejected", "default/b", "R"),
        ("decision", "admitted", "default/c", ""),
        ("event", "Normal", "default/a", "Started"),
    ]

    async with journal_in(tmp_path) as journal:
        await journal.decided(pod("d"), "admitted")
        assert [row.rank for row in journal.rows().values()] == [1, 2, None, 3]


async def test_a_pod_that_is_judged_anew_keeps_its_place(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        for name in ("a", "b"):
            await journal.decided(pod(name, source="file"), "admitted")
            journal.set_status(pod(name), {"phase": "Failed"})
        journal.judge_anew("uid-a")

    with reading(tmp_path) as store:
        rows = [(row.name, row.rank, row.verdict, dict(row.status)) for row in store.pods()]
    assert rows == [("a", 1, "", {}), ("b", 2, "admitted", {"phase": "Failed"})]


async def test_a_pod_that_is_gone_begins_anew(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal.decided(pod("a"), "rejected", reason="R")
        journal.forget("uid-a")
        journal.forget("uid-never-there")
        assert journal.row("uid-a") is None

    async with journal_in(tmp_path) as journal:
        assert journal.row("uid-a") is None


async def test_the_oldest_entries_go(tmp_path: Path) -> None:
    async with journal_in(tmp_path, keep=5) as journal:
        for number in range(12):
            journal.event(pod("a"), EventType.NORMAL, f"R{number}", "")
            await asyncio.sleep(0)

    with reading(tmp_path) as store:
        assert [entry.reason for entry in store.entries(100)] == [f"R{n}" for n in range(7, 12)]
        assert [entry.reason for entry in store.entries(2)] == ["R10", "R11"]
        assert store.entries(100, pod="default/other") == []


async def test_a_write_that_queues_is_made_although_its_caller_ends(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        go_on = threading.Event()
        journal._writer.submit(go_on.wait)
        journal.event(pod("a"), EventType.NORMAL, "R", "")
        deciding = asyncio.create_task(journal.decided(pod("b"), "admitted"))
        await asyncio.sleep(0.01)
        deciding.cancel()
        await asyncio.gather(deciding, return_exceptions=True)
        go_on.set()

    with reading(tmp_path) as store:
        assert [entry.pod for entry in store.entries(10)] == ["default/a", "default/b"]
        assert [row.name for row in store.pods()] == ["b"]


_WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from numalign_agent.journal.rows import PodRow
from numalign_agent.journal.store import JournalStore
store = JournalStore.open(Path(sys.argv[1]))
store.write([PodRow(uid="u", namespace="n", name="a", verdict="rejected")], [], [], 9)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_written_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    killed = subprocess.run([sys.executable, "-c", _WRITE_AND_DIE, str(path)], check=False)
    (row,) = JournalStore.open_to_read(path).pods()

    assert killed.returncode == -signal.SIGKILL
    assert row.is_rejected


def fill(journal: Journal, *, full: bool) -> None:
    """Make the file unable to grow, as on a full disk, or able again."""
    connection = journal._store._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages if full else 1 << 30}")


async def test_a_full_disk_stops_nobody_and_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    big = "x" * 100_000
    async with journal_in(tmp_path) as journal:
        metrics = journal._metrics
        fill(journal, full=True)
        await journal.decided(pod("a"), "rejected", message=big)
        await journal.decided(pod("b"), "admitted")
        row = journal.row("uid-b")
        assert row is not None
        assert row.rank == 1
        assert "numalign_agent_journal_failures_total 0.0" not in metrics.text()
        with reading(tmp_path) as store:
            assert store.pods() == []

        fill(journal, full=False)
        async with asyncio.timeout(60):
            while journal._failing:  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0.005)
        with reading(tmp_path) as store:
            assert [row.name for row in store.pods()] == ["b", "a"]
            assert len(store.entries(10)) == 2
    told = capsys.readouterr().err
    assert told.count("the journal cannot be written; the agent goes on") == 1


async def test_entries_that_wait_for_a_disk_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 3)
    async with journal_in(tmp_path) as journal:
        for number in range(5):
            journal.event(pod("a"), EventType.NORMAL, f"R{number}", "")
        assert "numalign_agent_journal_lost_entries_total 2.0" in journal._metrics.text()

    with reading(tmp_path) as store:
        assert [entry.reason for entry in store.entries(9)] == ["R2", "R3", "R4"]


def test_a_damaged_journal_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"this is no database" * 100)
    JournalStore.open(tmp_path / FILE_NAME).close()

    assert (tmp_path / f"{FILE_NAME}.damaged-1").read_bytes().startswith(b"this is no")


def test_a_journal_of_a_later_version_is_refused(tmp_path: Path) -> None:
    JournalStore.open(tmp_path / FILE_NAME).close()
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute("PRAGMA user_version=99")
    connection.close()

    for open_ in (JournalStore.open, JournalStore.open_to_read):
        with pytest.raises(StateError, match="version 99 is not this program's 1"):
            open_(tmp_path / FILE_NAME)


def test_there_is_nothing_to_read_before_an_agent_has_run(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="there is none"):
        JournalStore.open_to_read(tmp_path / FILE_NAME)


async def test_what_sources_cannot_use_is_kept_until_it_can(tmp_path: Path) -> None:
    bad = Problem("file", "/m/a.yaml", "no pod")
    async with journal_in(tmp_path) as journal:
        await journal.problems([bad])
        with reading(tmp_path) as store:
            assert store.problems() == [bad]
        await journal.problems([])
        with reading(tmp_path) as store:
            assert store.problems() == []


def test_a_journal_whose_making_was_cut_off_is_made_by_the_next_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(store_module, "_TABLES", (*store_module._TABLES[:2], "no statement"))
        with pytest.raises(StateError, match="syntax error"):
            JournalStore.open(tmp_path / FILE_NAME)
    JournalStore.open(tmp_path / FILE_NAME).close()
