"""The kubelet's checkpoint of allocated pod resources."""

from __future__ import annotations

import json

from tests.fuzz.bending import starts
from tests.fuzz.checksums import FITTING, Checksums, inputs
from tests.fuzz.recorded import lines_of
from tests.fuzz.target import Target

from numalign.kubelet_files import allocation_checkpoint
from numalign.kubelet_files.errors import CheckpointError

CHECKSUMS = Checksums(allocation_checkpoint)
DATA = tuple(
    record["data"]
    for record in lines_of("unit/allocation_checkpoint.jsonl")
    if isinstance(record.get("data"), str)
)
SEEDS = tuple(json.dumps({"data": data, "checksum": 1}) for data in DATA)


def wrapped(text: str) -> None:
    """Read the text as the content of a file: changes to a file rarely keep it whole."""
    file = json.dumps({"data": text, "checksum": FITTING})
    allocation_checkpoint.read_allocation_checkpoint(file)


def run(data: bytes) -> None:
    """Read a checkpoint, or the content of one."""
    inside = bool(data) and data[0] >= 128
    if inside:
        CHECKSUMS.read(DATA, data, wrapped)
    else:
        CHECKSUMS.read(SEEDS, data, allocation_checkpoint.read_allocation_checkpoint)


TARGET = Target(
    name="allocation_checkpoint",
    run=run,
    documented=(CheckpointError,),
    seeds=inputs(SEEDS) + tuple(bytes((130,)) + each for each in starts(DATA)),
    most_bytes=600,
    counts=False,
)
