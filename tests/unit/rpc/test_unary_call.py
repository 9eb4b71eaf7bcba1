"""Calls that are cancelled leave nothing behind in the memory of the caller."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from tests.unit.rpc.echo import Echo, EchoStub, registration
from tests.waiting import until

from numalign.config.settings import SocketSettings
from numalign.rpc.channel import open_channel
from numalign.rpc.server import ServiceServer
from numalign.rpc.unary_call import UnaryCall

CALLS = 200
ROUNDS = 6
MOST_BYTES = 500
"""What a call and its server may keep; a call of gRPC itself keeps more than a kilobyte."""


class Mallinfo(ctypes.Structure):
    """What the GNU C library says of its memory; `uordblks` are the bytes in use."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def allocated() -> int:
    """Bytes that C code of this process has in use."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        pytest.skip("only the GNU C library says what is allocated")
    library.mallinfo2.restype = Mallinfo
    gc.collect()
    return int(library.mallinfo2().uordblks)


async def hang_up(call: Callable[[], Any], times: int) -> None:
    """Begin calls and cancel the tasks that wait for them."""

    async def once() -> None:
        waiting = asyncio.ensure_future(_awaited(call()))
        await asyncio.sleep(0.005)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    for _ in range(times // 20):
        await asyncio.gather(*(once() for _ in range(20)))


async def _awaited(call: Any) -> object:
    return await call


async def test_cancelled_calls_leave_nothing_behind(run_directory: Path) -> None:
    path = run_directory / "echo.sock"
    echo = Echo()
    server = ServiceServer([registration(echo)], path, SocketSettings())
    await server.start()
    async with open_channel(path) as channel:
        stub = EchoStub(channel)

        async def some_rounds(count: int) -> int:
            """The bytes in use behind so many rounds, once the server has forgotten their calls."""
            for _ in range(count):
                await hang_up(lambda: stub.Unary(b"sleep"), CALLS)
            assert await stub.Unary(b"x") == b"x"
            await until(lambda: not echo.sleeping)
            await asyncio.sleep(0.1)
            return allocated()

        # The first rounds fill what is kept for later calls.
        first = await some_rounds(2)
        await some_rounds(ROUNDS - 2)
        # What is kept for good is so however long one waits.
        await until(lambda: allocated() - first < MOST_BYTES * CALLS * (ROUNDS - 2))
    await server.stop(0)


async def test_a_call_that_never_began_can_be_cancelled(run_directory: Path) -> None:
    async with open_channel(run_directory / "nobody.sock") as channel:
        call = EchoStub(channel).Unary(b"x", wait_for_ready=True)
        waiting = asyncio.ensure_future(_awaited(call))
        waiting.cancel()

        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not call.cancel() or call.cancelled()


async def test_the_calls_of_a_channel_are_waited_for(run_directory: Path) -> None:
    async with open_channel(run_directory / "nobody.sock") as channel:
        call = EchoStub(channel).Unary(b"x")

        assert isinstance(call, UnaryCall)
        with pytest.raises(aio.AioRpcError):
            await call
