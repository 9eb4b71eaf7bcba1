"""The thread that works for an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from numalign.store.writer_thread import WriterThread


@pytest.fixture(name="writer")
def writer_fixture() -> Iterator[WriterThread]:
    writer = WriterThread("writer")
    yield writer
    writer.stop()


async def test_it_answers_what_a_function_returns(writer: WriterThread) -> None:
    assert await writer.run(divmod, 7, 2) == (3, 1)


async def test_it_raises_what_a_function_raises(writer: WriterThread) -> None:
    with pytest.raises(ZeroDivisionError):
        await writer.run(divmod, 7, 0)

    assert await writer.run(divmod, 7, 7) == (1, 0)


async def test_functions_come_one_after_the_other_in_a_thread_of_their_own(
    writer: WriterThread,
) -> None:
    done: list[int] = []
    threads: set[str] = set()

    def note(number: int) -> None:
        threads.add(threading.current_thread().name)
        done.append(number)

    await asyncio.gather(*(writer.run(note, number) for number in range(100)))

    assert done == list(range(100))
    assert threads == {"writer"}


@pytest.mark.parametrize("fails", [False, True], ids=["returns", "raises"])
async def test_who_gives_up_waiting_does_not_stop_it(writer: WriterThread, fails: bool) -> None:
    go_on = threading.Event()
    done: list[str] = []

    def work() -> None:
        go_on.wait()
        done.append("work")
        if fails:
            raise ValueError

    waiting = asyncio.ensure_future(writer.run(work))
    waiting.cancel()
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    await writer.run(done.append, "next")
    assert done == ["work", "next"]


async def test_what_nobody_waits_for_and_fails_is_told_and_the_thread_goes_on(
    writer: WriterThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", told.append)

    writer.post(lambda: divmod(7, 0))

    assert await writer.run(divmod, 7, 2) == (3, 1)
    assert [args.exc_type for args in told] == [ZeroDivisionError]


async def test_stopping_carries_out_what_was_handed_in() -> None:
    writer = WriterThread("writer")
    done: list[int] = []
    for number in range(10):
        writer.post(partial(done.append, number))

    writer.stop()

    assert done == list(range(10))


def test_a_loop_that_is_closed_is_not_told() -> None:
    writer = WriterThread("writer")
    go_on = threading.Event()

    async def leave() -> None:
        writer.run(go_on.wait)

    asyncio.run(leave())
    go_on.set()
    writer.stop()


def test_one_that_never_worked_can_be_stopped() -> None:
    WriterThread("writer").stop()
