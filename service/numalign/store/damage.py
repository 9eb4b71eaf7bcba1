"""What is done about a state file that is damaged: two ways, chosen at start.

Separate from opening, so that no store asks which way was chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from numalign.errors import DamagedState
from numalign.store.state_file import set_aside

OnDamage = Callable[[DamagedState], str]
"""Makes room for a new file and says what it did, or raises."""


def refuse_damage(error: DamagedState) -> NoReturn:
    """Leave the file as it is: the service does not start."""
    raise error


def set_damage_aside(error: DamagedState) -> str:
    """Rename the file; what it held comes back from the other services, as far as they know."""
    kept = set_aside(Path(error.path))
    return f"{error}; set aside as {kept}, and a new one is begun"
