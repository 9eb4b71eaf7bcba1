"""Why a state file cannot be used, in the kubelet's words.

The reason alone is what the readers raise; the sentence around it names the path, which only
the caller knows.

    CheckpointError
     ├── CorruptCheckpoint      the checksum does not fit the content
     ├── UndecodableCheckpoint  not JSON, or JSON of another shape
     └── UnusableCheckpoint     decoded, but written for another policy or with a bad CPU list
"""

from __future__ import annotations

from numalign.errors import StateError


class CheckpointError(StateError):
    """A state file of the kubelet that cannot be restored; the message is the bare reason."""

    def refusal(self, owner: str, path: str) -> str:
        """The sentence with which the kubelet refuses to start over the file at `path`.

        `owner` names the file as the kubelet does: `the CPU manager`, `the memory manager`,
        or `pod resource information` (CPU-29, MEM-73, ALLOC-8).
        """
        return (
            f"could not restore state from checkpoint: {self}, please drain this node and delete "
            f'{owner} checkpoint file "{path}" before restarting Kubelet'
        )


class CorruptCheckpoint(CheckpointError):
    """The stored checksum is not that of the content."""

    def __init__(self) -> None:
        super().__init__("checkpoint is corrupted")


class UndecodableCheckpoint(CheckpointError):
    """The text is not JSON of the expected shape. The kubelet's wording varies; ours is our own."""


class UnusableCheckpoint(CheckpointError):
    """The content is intact but does not fit the configuration or cannot be understood."""


CPU_OWNER = "the CPU manager"
MEMORY_OWNER = "the memory manager"
ALLOCATION_OWNER = "pod resource information"
