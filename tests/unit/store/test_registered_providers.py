"""Who has registered is known to the next process, and not beyond the next start of the machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from numalign.store.database import Database
from numalign.store.registered_providers import RegisteredProviders


@asynccontextmanager
async def kept_in(directory: Path, boot: str) -> AsyncIterator[RegisteredProviders]:
    database = Database.open(directory, "topology", report=print)
    yield RegisteredProviders(database, boot)
    await database.close()


async def test_who_has_registered_is_known_in_order_to_the_next_process(tmp_path: Path) -> None:
    async with kept_in(tmp_path, "boot") as kept:
        assert await kept.known() == ()
        for name, said in (("a", b"1"), ("b", b"2"), ("c", b"3"), ("a", b"4")):
            await kept.keep(name, said)
        await kept.forget("b")
        await kept.forget("nobody")
    async with kept_in(tmp_path, "boot") as kept:
        assert await kept.known() == (b"3", b"4")


async def test_those_of_another_boot_are_forgotten(tmp_path: Path) -> None:
    async with kept_in(tmp_path, "first") as kept:
        await kept.keep("a", b"1")
    async with kept_in(tmp_path, "second") as kept:
        await kept.keep("b", b"2")
        assert await kept.known() == (b"2",)
    async with kept_in(tmp_path, "first") as kept:
        assert await kept.known() == ()
