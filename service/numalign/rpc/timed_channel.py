"""A channel that tells how long each unary call took. Opened where metrics are served.

Separate from `channel`, so that nothing stands in the way of a call where nobody counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from grpc import ChannelConnectivity, aio

Observe = Callable[[float], None]
"""Takes the seconds that a call took."""


class TimedChannel(aio.Channel):
    """Calls as `inner` does; `observer` gives for a method's name who hears of its calls."""

    def __init__(self, inner: aio.Channel, observer: Callable[[str], Observe]) -> None:
        self._inner = inner
        self._observer = observer

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """One request, one response, timed from the call to its end, whatever that is."""
        call: Any = self._inner.unary_unary(method, *args, **kwargs)
        observe = self._observer(method.rpartition("/")[2])

        def timed(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            running = call(*arguments, **options)
            running.add_done_callback(lambda _: observe(time.perf_counter() - started))
            return running

        return timed

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """One request, a stream of responses; not timed, as it lasts as long as it lasts."""
        return self._inner.unary_stream(method, *args, **kwargs)

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A stream of requests, one response; not timed."""
        return self._inner.stream_unary(method, *args, **kwargs)

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """A stream of requests, a stream of responses; not timed."""
        return self._inner.stream_stream(method, *args, **kwargs)

    async def close(self, grace: float | None = None) -> None:
        """Close the connection."""
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> ChannelConnectivity:
        """How the connection stands."""
        state: ChannelConnectivity = self._inner.get_state(try_to_connect)
        return state

    async def wait_for_state_change(self, last_observed_state: ChannelConnectivity) -> None:
        """Wait until the connection stands otherwise."""
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until there is a connection."""
        await self._inner.channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.close()
