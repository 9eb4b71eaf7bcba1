"""One service, put together and ready to be served: what the two ways to run have in common.

A part knows nothing of sockets. `serve` puts one part or all of them behind servers; the
embedded way connects the parts of a process through local channels.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from numalign.config.settings import Service, Settings
from numalign.process.change import Change
from numalign.rpc.methods import Registration


async def nothing() -> None:
    """Nothing to do."""


def nothing_reported() -> tuple[str, ...]:
    """Nothing is wrong."""
    return ()


async def nothing_changed(settings: Settings) -> tuple[str, ...]:  # noqa: ARG001 - a default
    """Nothing that any setting changes while it runs."""
    return ()


async def no_change(settings: Settings) -> Change:  # noqa: ARG001 - a default
    """A part that no setting changes while it runs."""
    return Change()


def no_generation() -> int:
    """A part that keeps no state, and so no count of its configurations."""
    return 0


@dataclass(frozen=True, slots=True)
class OwnSocket:
    """A socket that a part has besides the one of its service, for interfaces of others."""

    path: Path
    registrations: tuple[Registration, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A service. Its callbacks run on the event loop of its process.

    - `registration` is its servicer, for a server of either kind;
    - `health_name` is the full name of its gRPC service, its name in grpc health;
    - `serving` is called once it can be reached;
    - `ready` ends when its answers do not depend on anybody who is still to come; until then
      health says of `health_name` that it does not serve;
    - `check` says what new settings would change, and raises ConfigError where it refuses them;
    - `turn` keeps admissions out while it is held, if the part is who decides on them;
    - `generation` is the number of the configuration in force, 0 where nobody counts;
    - `close` gives back what it holds, after the server has stopped;
    - `reports` says what was re-based, dropped or lost since the start;
    - `notices` says what is not as the state has it, at this moment and outside the state;
    - `sockets` are served beside the service, in processes that serve sockets at all.
    """

    service: Service
    registration: Registration
    health_name: str
    serving: Callable[[], Awaitable[None]] = nothing
    ready: Callable[[], Awaitable[None]] = nothing
    check: Callable[[Settings], Awaitable[Change]] = no_change
    turn: Callable[[], AbstractAsyncContextManager[None]] | None = None
    generation: Callable[[], int] = no_generation
    close: Callable[[], Awaitable[None]] = nothing
    reports: Callable[[], tuple[str, ...]] = nothing_reported
    notices: Callable[[], tuple[str, ...]] = nothing_reported
    sockets: tuple[OwnSocket, ...] = field(default=())
