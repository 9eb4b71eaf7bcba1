"""The printed form of a Go value, over which the kubelet computes its checksums (MEM-69).

Only the grammar: how a struct, a map and a list are put together from printed parts. What
the parts are is said by the shapes.
"""

from __future__ import annotations

from collections.abc import Iterable

NIL = "<nil>"
"""A null map, list or pointer."""

POINTER = "<*>"
"""Stands before a struct that is held by a pointer."""


def dump_struct(members: Iterable[tuple[str, str, str]]) -> str:
    """Print (name, Go type, printed value) triples, in declaration order."""
    return "{" + " ".join(f"{name}:({kind}){value}" for name, kind, value in members) + "}"


def dump_map(entries: Iterable[tuple[str, str]]) -> str:
    """Print (key, printed value) pairs, already in key order; elements carry no type."""
    return "map[" + " ".join(f"{key}:{value}" for key, value in entries) + "]"


def dump_list(elements: Iterable[str]) -> str:
    """Print a list of printed elements; elements carry no type."""
    return "[" + " ".join(elements) + "]"
