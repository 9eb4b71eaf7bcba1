"""Places at which a service of a crash test can be made to die, around unchanged product code.

`install` wraps the functions that an admission and a start pass through. Each place asks a plan
file whether this is the moment: `<place> <count> <token> <pid> ...` kills the process, as SIGKILL
does, and those with these pids in the same moment, when the place is reached for the `count`-th
time under that token. Tests write and remove the file.
"""

from __future__ import annotations

import functools
import os
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from numalign.admission.servicer import AdmissionServicer
from numalign.cpu.engine import CpuEngine
from numalign.device.engine import DeviceEngine
from numalign.memory.engine import MemoryEngine
from numalign.provider.ledger import Ledger
from numalign.rpc.grpc_server import GrpcServer
from numalign.store.admission_store import AdmissionStore
from numalign.store.database import Database
from numalign.store.provider_store import ProviderStore
from numalign.topology.servicer import TopologyManagerServicer
from numalign.topology.settlement import Settlement

Reached = Callable[[str], None]

HINTS = ("hints.entered", "hints.answered")
ALLOCATE = ("allocate.entered", "seal.entered", "seal.done", "allocate.answered")
PREPARE = ("prepare.entered", "prepare.in-transaction", "prepare.written")
ROW = ("row.entered", "row.in-transaction", "row.written", "admit.answered")
SETTLE = ("commit.entered", "abort.entered", "abort.done", "release.entered", "release.done")
FORGET = ("delete.entered", "delete.in-transaction", "delete.written")
ADD = ("add.entered", "add.done")
CONTAINER = ("container.entered", "container.in-transaction", "container.written")
DOOR = ("door.entered", "door.answered")

LISTEN = ("listen.entered", "listen.done")
LOAD = ("load.entered", "load.done")
TOLD = ("told.entered", "told.done")
RESTORE = ("restore.entered", "restore.in-transaction", "restore.done")
INTRODUCE = ("introduce.entered", "introduce.done")
"""Where a process passes that has just started; only a provider that lost something restores."""

LOST = "a provider had lost something of"
"""How a line of the log begins that no crash may lead to."""

_writing: ContextVar[str] = ContextVar("writing", default="")


def install(plan: Path) -> None:
    """Wrap the functions, before any of their objects is made."""
    reached = _watch(plan)
    _around(Ledger, "hints", reached, "hints.entered", "hints.answered")
    _around(Ledger, "allocate", reached, "allocate.entered", "allocate.answered")
    for engine in (CpuEngine, MemoryEngine, DeviceEngine):
        _around(engine, "seal", reached, "seal.entered", "seal.done")
    _around(ProviderStore, "prepare", reached, "prepare.entered", "prepare.written")
    _around(AdmissionStore, "commit_all", reached, "row.entered", "row.written")
    _around(TopologyManagerServicer, "Admit", reached, "", "admit.answered")
    _around(Ledger, "commit", reached, "commit.entered", "")
    _around(Ledger, "abort", reached, "abort.entered", "abort.done")
    _around(Ledger, "release", reached, "release.entered", "release.done")
    _around(AdmissionStore, "delete", reached, "delete.entered", "delete.written")
    _around(Ledger, "add_container", reached, "add.entered", "add.done")
    _around(AdmissionStore, "add_container", reached, "container.entered", "container.written")
    _around(AdmissionServicer, "Admit", reached, "door.entered", "door.answered")
    _around(GrpcServer, "start", reached, "listen.entered", "listen.done")
    _around(ProviderStore, "load", reached, "load.entered", "load.done")
    _around(AdmissionStore, "load_all", reached, "load.entered", "load.done")
    _around(Ledger, "reconcile", reached, "told.entered", "told.done")
    _around(Ledger, "restore", reached, "restore.entered", "restore.done")
    _around(Settlement, "introduce", reached, "introduce.entered", "introduce.done")
    _inside_transactions(Database, reached)
    _tell_of_losses(Ledger)


def _watch(plan: Path) -> Reached:
    hits: Counter[str] = Counter()

    def reached(place: str) -> None:
        try:
            wanted, count, token, *others = plan.read_text().split()
        except FileNotFoundError:
            return
        if wanted == place:
            hits[token] += 1
            if hits[token] == int(count):
                for pid in (*map(int, others), os.getpid()):
                    os.kill(pid, signal.SIGKILL)

    return reached


def _around(owner: type, name: str, reached: Reached, before: str, after: str) -> None:
    inner = getattr(owner, name)
    kind = before.partition(".")[0]

    @functools.wraps(inner)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        if before:
            reached(before)
        token = _writing.set(kind)
        try:
            result = await inner(*args, **kwargs)
        finally:
            _writing.reset(token)
        if after:
            reached(after)
        return result

    setattr(owner, name, wrapped)


def _inside_transactions(owner: Any, reached: Reached) -> None:
    write, defer = owner.write, owner.defer

    def last(work: Callable[[sqlite3.Connection], Any]) -> Callable[[sqlite3.Connection], Any]:
        place = f"{_writing.get()}.in-transaction"

        def then_ask(connection: sqlite3.Connection) -> Any:
            result = work(connection)
            reached(place)
            return result

        return then_ask

    async def writing(self: Any, work: Any, *, synced: bool) -> Any:
        return await write(self, last(work), synced=synced)

    def deferring(self: Any, work: Any) -> None:
        defer(self, last(work))

    owner.write, owner.defer = writing, deferring


def _tell_of_losses(owner: Any) -> None:
    """Say it when a pod is given back something: then its provider had lost it."""
    restore = owner.restore

    @functools.wraps(restore)
    async def telling(self: Any, pods: Iterable[Any]) -> Any:
        recorded = tuple(pods)
        held = [self.engine.holdings(self.state, each.pod_uid) for each in recorded]
        result = await restore(self, recorded)
        for before, each in zip(held, recorded, strict=True):
            after = self.engine.holdings(self.state, each.pod_uid)
            if after != before:
                sys.stderr.write(f"{LOST} {each.pod_uid}: {before}, now {after}\n")
                sys.stderr.flush()
        return result

    owner.restore = telling
