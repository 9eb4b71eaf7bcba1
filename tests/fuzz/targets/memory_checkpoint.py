"""The memory manager's checkpoint of a kubelet."""

from __future__ import annotations

from tests.fuzz.checksums import Checksums, checkpoints, inputs
from tests.fuzz.target import Target

from numalign.kubelet_files import memory_checkpoint
from numalign.kubelet_files.errors import CheckpointError

SEEDS = checkpoints("memory")
CHECKSUMS = Checksums(memory_checkpoint)


def run(data: bytes) -> None:
    """Read a checkpoint, with and without resource managers for whole pods."""
    gate = bool(data) and data[0] >= 128

    def parse(text: str) -> None:
        memory_checkpoint.read_memory_checkpoint(text, "Static", gate)

    CHECKSUMS.read(SEEDS, data, parse)


TARGET = Target(
    name="memory_checkpoint",
    run=run,
    documented=(CheckpointError,),
    seeds=inputs(SEEDS),
    most_bytes=600,
    counts=False,
)
