"""The device manager's checkpoint of a kubelet."""

from __future__ import annotations

from tests.fuzz.checksums import Checksums, checkpoints, inputs
from tests.fuzz.target import Target

from numalign.kubelet_files import device_checkpoint
from numalign.kubelet_files.errors import CheckpointError

SEEDS = checkpoints("device")
CHECKSUMS = Checksums(device_checkpoint)


def run(data: bytes) -> None:
    """Read a checkpoint."""
    CHECKSUMS.read(SEEDS, data, device_checkpoint.read_device_checkpoint)


TARGET = Target(
    name="device_checkpoint",
    run=run,
    documented=(CheckpointError,),
    seeds=inputs(SEEDS),
    most_bytes=600,
    counts=False,
)
