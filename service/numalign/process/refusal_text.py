"""What a process says that cannot be started, and how that is read again.

Both in one place, since a replay with processes holds the text to what the kubelet says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from numalign.errors import ConfigError, NumalignError, StartError

_SAYS = "numalign: "
_OF_A_MANAGER = re.compile(
    r"(?:(?P<setting>[\w.\[\]-]+): )?"
    r"(?P<stage>(?:topology|cpu|memory)_manager(?:_start)?): (?P<message>.*)",
    re.DOTALL,
)


def refusal_lines(error: NumalignError) -> tuple[str, ...]:
    """A line for each thing that prevents the start, each under the command's name."""
    text = error.line() if isinstance(error, StartError) else str(error)
    return tuple(f"{_SAYS}{line}" for line in text.splitlines())


def read_refusal(lines: Iterable[str]) -> StartError | ConfigError:
    """The error that `refusal_lines` told of: a StartError where it is one of a manager."""
    said = "\n".join(line.removeprefix(_SAYS) for line in lines)
    refusal = _OF_A_MANAGER.fullmatch(said)
    if refusal is None:
        return ConfigError(said or "a service ended without a word")
    return StartError(refusal["stage"], refusal["message"], setting=refusal["setting"] or "")
