"""The cpu manager's checkpoint of a kubelet."""

from __future__ import annotations

from tests.fuzz.checksums import Checksums, checkpoints, inputs
from tests.fuzz.target import Target

from numalign.kubelet_files import cpu_checkpoint
from numalign.kubelet_files.errors import CheckpointError
from numalign.model.ids import PodUid

SEEDS = checkpoints("cpu")
CHECKSUMS = Checksums(cpu_checkpoint)
CONTAINERS = {"a": (PodUid("u"), "c")}


def run(data: bytes) -> None:
    """Read a checkpoint, with and without resource managers for whole pods."""
    gate = bool(data) and data[0] >= 128

    def parse(text: str) -> None:
        cpu_checkpoint.read_cpu_checkpoint(text, "static", gate, CONTAINERS)

    CHECKSUMS.read(SEEDS, data, parse)


TARGET = Target(
    name="cpu_checkpoint",
    run=run,
    documented=(CheckpointError,),
    seeds=inputs(SEEDS),
    most_bytes=600,
    counts=False,
)
