"""What new settings change in one part of a process, in two steps: looked at, then made.

Separate from the parts and from who reloads, so that nothing is changed anywhere before every
part has agreed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from numalign.errors import ConfigError, StartError


async def _nothing_applied() -> tuple[str, ...]:
    return ()


def _no_objection() -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to be done. `apply` does it and says which settings are in force, by path.

    `exclusive`: no admission may be open meanwhile, and record and books are brought together
    afterwards. `verify` raises ConfigError where the books do not allow the change; it is asked
    again when no admission is open any more, of every part before the first `apply`.
    """

    exclusive: bool = False
    verify: Callable[[], None] = _no_objection
    apply: Callable[[], Awaitable[tuple[str, ...]]] = _nothing_applied


@contextmanager
def refusals() -> Iterator[None]:
    """A start check that refuses new settings says so as ConfigError, naming its stage."""
    try:
        yield
    except StartError as error:
        raise ConfigError(error.line()) from error


class InForce:
    """The values of some settings that a part runs with, by path."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def changed(self, values: Mapping[str, object]) -> tuple[str, ...]:
        """Paths of the settings that would be others."""
        return tuple(path for path, value in values.items() if value != self._values[path])

    def now(self, values: Mapping[str, object]) -> None:
        """These are in force."""
        self._values = values
