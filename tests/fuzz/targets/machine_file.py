"""Decoded machine files, with odd values in them."""

from __future__ import annotations

from tests.fuzz.bending import MOST_BYTES, bent, starts
from tests.fuzz.recorded import machines
from tests.fuzz.target import Target

from numalign.document.problems import DocumentError
from numalign.machine.machine_file import machine_from_document
from numalign.machine.schema import document_of_machine

SEEDS = tuple(
    text if number % 2 else f'{{"machine": {text}}}' for number, text in enumerate(machines(10))
)


def run(data: bytes) -> None:
    """Read a machine; written and read again it must be the same one."""
    machine = machine_from_document(bent(SEEDS, data), "m")
    assert machine_from_document(document_of_machine(machine), "m") == machine


TARGET = Target(
    name="machine_file",
    run=run,
    documented=(DocumentError,),
    seeds=starts(SEEDS),
    most_bytes=MOST_BYTES,
    counts=False,
)
