"""One thread that carries out blocking functions in order, and an event loop that awaits them.

Separate from `database`, which knows transactions and no threads. An executor of the standard
library does more than is needed here (threads that come and go, two futures for each function,
a lock for each of them), and is on the way of every admission, more than once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class WriterThread:
    """The thread; it begins with the first function."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """Have `function` carried out; the future has what it returns or raises.

        To cancel the future gives up the wait, not the function.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def carry_out() -> None:
            try:
                result = function(*arguments)
            except BaseException as error:
                _tell(loop, partial(_fail, future, error))
            else:
                _tell(loop, partial(_answer, future, result))

        self.post(carry_out)
        return future

    def post(self, function: Callable[[], object]) -> None:
        """Have `function` carried out; nobody waits for it.

        What it raises goes to `threading.excepthook`, and the thread goes on.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._queue.put(function)

    def stop(self) -> None:
        """Wait until everything that was handed in is carried out, and end. Blocking."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _work(self) -> None:
        while (function := self._queue.get()) is not None:
            try:
                function()
            except Exception as error:
                threading.excepthook(
                    threading.ExceptHookArgs(
                        (type(error), error, error.__traceback__, threading.current_thread())
                    )
                )
            # What it holds is not kept until there is something else to do.
            del function


def _tell(loop: asyncio.AbstractEventLoop, outcome: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(outcome)
    except RuntimeError:
        # The loop is closed, and nobody waits any more.
        if not loop.is_closed():
            raise


def _answer(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
