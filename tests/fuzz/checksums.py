"""Checkpoints whose checksum fits although they were changed.

A changed checkpoint is refused for its checksum, and what would happen to its content is never
seen. So half of the inputs are read with a checksum function that finds what is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import ModuleType

from tests.fuzz.bending import bent, starts
from tests.fuzz.recorded import unit_inputs

from numalign.kubelet_files.fnv import fnv1a_32

FITTING = 4242
MOST_SEEDS = 80

_CHECKSUM = re.compile(r'("checksum": ?)[0-9]+', re.IGNORECASE)


class Checksums:
    """The checksum function of one module, which can be told to find `FITTING` in everything."""

    def __init__(self, module: ModuleType) -> None:
        self._fitting = False
        module.__dict__["fnv1a_32"] = self

    def __call__(self, text: str) -> int:
        return FITTING if self._fitting else fnv1a_32(text)

    def read(self, seeds: tuple[str, ...], data: bytes, parse: Callable[[str], object]) -> None:
        """Parse the text that `data` stands for.

        The first byte says how: the bytes themselves, or a document changed by them, with a
        checksum that fits or that does not.
        """
        mode = data[0] % 4 if data else 0
        if mode == 0:
            text = data[1:].decode("utf-8", "replace")
        else:
            text = json.dumps(bent(seeds, data[1:]))
        self._fitting = mode >= 2
        try:
            parse(_CHECKSUM.sub(rf"\g<1>{FITTING}", text) if self._fitting else text)
        finally:
            self._fitting = False


def checkpoints(manager: str) -> tuple[str, ...]:
    """The shortest recorded files of one manager that are JSON objects."""
    found: dict[str, None] = {}
    for given in unit_inputs("checkpoint"):
        if given["manager"] == manager and _is_object(given["content"]):
            found[given["content"]] = None
    return tuple(sorted(found, key=lambda text: (len(text), text))[:MOST_SEEDS])


def inputs(seeds: tuple[str, ...]) -> tuple[bytes, ...]:
    """Inputs for the engines: each file as it is, and as a document in each way."""
    plain = tuple(b"\0" + text.encode("utf-8", "replace") for text in seeds)
    return plain + tuple(bytes((mode,)) + each for each in starts(seeds) for mode in (1, 2))


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
