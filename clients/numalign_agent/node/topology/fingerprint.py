"""The fingerprint of a set of pods, as a scheduler computes it of the pods that it knows. Pure.

Namespace and name of each pod are hashed, the hashes sorted, and hashed together: format
`pfp0v001` of k8stopologyawareschedwg/podfingerprint. Both sides have to agree on which pods count.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

import xxhash

_FORMAT = "pfp0v001"


def fingerprint(pods: Iterable[tuple[str, str]]) -> str:
    """The fingerprint of pods by namespace and name, in any order."""
    hashes = sorted(
        xxhash.xxh64_intdigest(name, seed=xxhash.xxh64_intdigest(namespace))
        for namespace, name in pods
    )
    return _FORMAT + xxhash.xxh64_hexdigest(pack(f"<{len(hashes)}Q", *hashes))
