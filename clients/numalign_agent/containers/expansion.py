"""`$(VAR)` in commands, arguments and environment values.

Pure. `$$` stands for a dollar sign, and a variable that does not exist stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """The text with every `$(NAME)` replaced by the variable's value."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(value, text)
