"""Transactions on one state file, run by one writer thread behind an async face.

Separate from the stores, which know tables but no threads. The event loop never waits for a
disk: each transaction is handed to the writer thread, in order of arrival, and the caller
awaits its end.

Small changes that need not be durable by themselves are deferred: they ride in the next
transaction, in order, and alone after a moment if there is none. An admission in one process
is then one hand-over to the thread and one sync.

What is durable when: a transaction that is not synced survives the end of the process, but
perhaps not a loss of power. A synced transaction is on disk when its await returns, and so is
everything that was written to the same file before it, because both are in the same
write-ahead log and the log is synced as a whole. That is why several stores that share a
file need one sync per admission.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from numalign.errors import DamagedState, StateError, StateNotWritten
from numalign.store.damage import OnDamage, refuse_damage
from numalign.store.process_lock import ProcessLock
from numalign.store.state_file import open_state_file
from numalign.store.writer_thread import WriterThread

T = TypeVar("T")

_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    }
)
"""What a disk or a system can get over: the same transaction may succeed later."""

_PRIMARY_CODE = 0xFF

_CHECKPOINT_AFTER_WRITES = 64
_DEFER_AT_MOST_SECONDS = 0.01


class Database:
    """One state file, locked for this process. All stores of one process can share it.

    Only the writer thread touches the connection after `open`.
    """

    def __init__(
        self,
        path: Path,
        lock: ProcessLock,
        connection: sqlite3.Connection,
        observe_commit: Callable[[float], None] | None,
        report: Callable[[str], None],
        reports: tuple[str, ...] = (),
    ) -> None:
        self.reports = reports
        self.path = path
        self._lock = lock
        self._connection = connection
        self._observe_commit = observe_commit
        self._report = report
        self._writer = WriterThread(f"store-{path.stem}")
        self._writes = 0
        self._synced_mode = False
        self._deferred: deque[Callable[[sqlite3.Connection], object]] = deque()
        # How many changes were ever deferred, and how many of them are carried out. Counted by
        # the event loop and by the writer thread: a transaction takes along what was deferred
        # before it was handed in, and leaves what was deferred while it waited for its turn.
        self._deferred_so_far = 0
        self._carried_out = 0
        self._flush: asyncio.TimerHandle | None = None
        self._closed = False

    @classmethod
    def open(
        cls,
        directory: Path,
        name: str,
        *,
        report: Callable[[str], None],
        observe_commit: Callable[[float], None] | None = None,
        on_damage: OnDamage = refuse_damage,
    ) -> Self:
        """Open `<directory>/<name>.db`, made if missing, with its lock `<name>.lock`.

        `report` is told, and `observe_commit` gets the seconds of each synced transaction,
        from the writer thread: `report` is a line for the log on upkeep that failed without
        losing anything. What `on_damage` does about a damaged file is in `reports` of the
        result. Blocking. Raises StateError when another process holds the file, or when it is
        newer than this program, and what `on_damage` raises.
        """
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(f"state directory {directory}: {error.strerror}") from error
        path = directory / f"{name}.db"
        lock = ProcessLock.acquire(directory / f"{name}.lock")
        reports: tuple[str, ...] = ()
        try:
            try:
                connection = open_state_file(path)
            except DamagedState as error:
                reports = (on_damage(error),)
                connection = open_state_file(path)
        except BaseException:
            lock.release()
            raise
        return cls(path, lock, connection, observe_commit, report, reports)

    async def write(self, work: Callable[[sqlite3.Connection], T], *, synced: bool) -> T:
        """Run `work` in one transaction and return what it returned.

        An exception of `work` rolls the transaction back. SQLite's errors come out as
        StateNotWritten where they may pass (a full disk), else as StateError (a file damaged
        meanwhile). A cancelled wait does not stop the
        transaction: it is carried out, or not, as if nobody had gone away.
        """
        self._check_open()
        return await self._writer.run(self._write, work, synced, self._deferred_so_far)

    def defer(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Run `work` at the start of the next transaction that is handed in.

        So it comes after everything that was deferred or handed in before, and before what is
        handed in later. At the latest that is `_DEFER_AT_MOST_SECONDS` from now, in a transaction
        that is not synced. When that transaction fails, `work` stays in line for the one after
        it.
        """
        self._check_open()
        self._deferred.append(work)
        self._deferred_so_far += 1
        if self._flush is None:
            loop = asyncio.get_running_loop()
            self._flush = loop.call_later(_DEFER_AT_MOST_SECONDS, self._flush_due)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work`, which only reads, and return what it returned; errors as in `write`."""
        self._check_open()
        return await self._writer.run(self._read, work, self._deferred_so_far)

    async def close(self) -> None:
        """Finish what was handed in, fold the log into the file and give the lock back."""
        if self._closed:
            return
        self._closed = True
        if self._flush is not None:
            self._flush.cancel()
        try:
            await self._writer.run(self._finish, self._deferred_so_far)
        finally:
            self._writer.stop()
            self._lock.release()

    def _check_open(self) -> None:
        if self._closed:
            raise StateNotWritten(str(self.path), f"state file {self.path} is closed")

    def _flush_due(self) -> None:
        self._flush = None
        self._writer.post(partial(self._write_deferred, self._deferred_so_far))

    def _write_deferred(self, up_to: int) -> None:
        try:
            self._carry_out(up_to)
        except StateError as error:
            self._report(f"deferred changes have to wait: {error}")

    def _finish(self, up_to: int) -> None:
        try:
            self._carry_out(up_to)
        finally:
            self._connection.close()

    def _carry_out(self, up_to: int) -> None:
        if up_to > self._carried_out:
            self._write(_nothing, False, up_to)

    def _read(self, work: Callable[[sqlite3.Connection], T], up_to: int) -> T:
        self._carry_out(up_to)
        try:
            return work(self._connection)
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _write(self, work: Callable[[sqlite3.Connection], T], synced: bool, up_to: int) -> T:
        waiting = max(0, up_to - self._carried_out)
        started = time.perf_counter()
        connection = self._connection
        try:
            if synced != self._synced_mode:
                connection.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
                self._synced_mode = synced
            connection.execute("BEGIN IMMEDIATE")
            try:
                for position in range(waiting):
                    self._deferred[position](connection)
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                # SQLite has already rolled back by itself after some errors.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._failure(error) from error
        for _ in range(waiting):
            self._deferred.popleft()
        self._carried_out += waiting
        if synced and self._observe_commit is not None:
            self._observe_commit(time.perf_counter() - started)
        self._writes += 1
        if self._writes >= _CHECKPOINT_AFTER_WRITES and not self._closed:
            self._writes = 0
            self._writer.post(self._checkpoint)
        return result

    def _failure(self, error: sqlite3.Error) -> StateError:
        message = f"state file {self.path}: {error}"
        if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE in _PASSING:
            return StateNotWritten(str(self.path), message)
        return StateError(message)

    def _checkpoint(self) -> None:
        # The log keeps its size and is written over from its start: syncing a file that
        # does not grow takes about half the time. A reader from outside can make this do
        # less than all, and nothing is lost when it fails: what is in the log is stored.
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:
            if not self._closed:
                self._report(f"state file {self.path}: cannot fold the log in: {error}")


def _nothing(_: sqlite3.Connection) -> None:
    """The work of a transaction that only carries what was deferred."""
