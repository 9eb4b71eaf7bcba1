"""The stored form of the kept claims: JSON.

Separate from the claims, so that the values know nothing of files.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from numalign.dra.values import ClaimInfo, Claims
from numalign.errors import StateError


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored. `boot` is the boot of the node under which it was written.

    `whole`: these are all claims that admitted pods use, as far as their record says.
    """

    boot: str
    whole: bool
    claims: tuple[ClaimInfo, ...] = ()

    def by_key(self) -> Claims:
        """The claims as they are kept."""
        return {claim.key: claim for claim in self.claims}


def encode(stored: Stored) -> bytes:
    """`stored` as JSON."""
    return msgspec.json.encode(stored)


def decode(payload: bytes) -> Stored:
    """Read what `encode` gave. Raises StateError for anything else."""
    try:
        return msgspec.json.decode(payload, type=Stored)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StateError(f"stored resource claims cannot be read: {error}") from error
