"""The uid of a pod whose manifest has none.

Separate because the command and the clients must make up the same one: a pod that is asked
about twice is then the same pod, and can be released by its manifest.
"""

from __future__ import annotations

from uuid import UUID, uuid5

_SPACE = UUID("5a1f0d0e-6d0c-5a7e-9a53-7b1d4f1c2e90")
"""Where these uids are made; a new value would change all of them."""


def invented_uid(kind: str, namespace: str, name: str) -> str:
    """A uid that depends on the object's kind, namespace and name alone."""
    return str(uuid5(_SPACE, f"{kind}/{namespace}/{name}"))
