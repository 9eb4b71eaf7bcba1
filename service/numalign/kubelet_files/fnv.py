"""The hash of all checksums in the kubelet's state files: FNV-1a, 32 bits (CPU-25)."""

from __future__ import annotations

_OFFSET_BASIS = 0x811C9DC5
_PRIME = 0x01000193
_MASK = 0xFFFFFFFF


def fnv1a_32(text: str) -> int:
    """The FNV-1a hash of the UTF-8 bytes of `text`, 0..2^32-1."""
    value = _OFFSET_BASIS
    for byte in text.encode():
        value = (value ^ byte) * _PRIME & _MASK
    return value
