"""Thresholds of the container filesystem, which follow those of another one (EVI-9).

Separate from reading the options because it needs to know how filesystems are laid out, which
is found out by the first evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from numalign.admission.handlers.eviction_signals import (
    AVAILABLE,
    CONTAINERFS,
    IMAGEFS,
    INODES_FREE,
    NODEFS,
)
from numalign.admission.handlers.eviction_thresholds import Amount, Threshold


def with_container_fs(
    thresholds: Sequence[Threshold], *, dedicated_image_fs: bool, split_container_fs: bool
) -> tuple[tuple[Threshold, ...], tuple[Threshold, ...]]:
    """The thresholds for the first evaluation, and those in force from then on.

    The first ones have the user's own entries overwritten; what is added where the user gave
    none is in the second ones only. A split filesystem beside no dedicated one is no layout
    that the kubelet knows, and changes nothing.
    """
    if split_container_fs and not dedicated_image_fs:
        return tuple(thresholds), tuple(thresholds)
    source = IMAGEFS if dedicated_image_fs and not split_container_fs else NODEFS
    overwritten = list(thresholds)
    added = []
    for kind in (AVAILABLE, INODES_FREE):
        for is_hard in (True, False):
            copy = _copy_of(_last(thresholds, f"{source}.{kind}", is_hard), kind)
            place = _last(thresholds, f"{CONTAINERFS}.{kind}", is_hard)
            if place is not None:
                overwritten[place[0]] = copy
            else:
                added.append(copy)
    return tuple(overwritten), (*overwritten, *added)


def _last(
    thresholds: Sequence[Threshold], signal: str, is_hard: bool
) -> tuple[int, Threshold] | None:
    """The last threshold of a signal, hard or soft, with its place."""
    found = None
    for index, threshold in enumerate(thresholds):
        if threshold.signal == signal and threshold.is_hard is is_hard:
            found = (index, threshold)
    return found


def _copy_of(origin: tuple[int, Threshold] | None, kind: str) -> Threshold:
    """The same threshold on the container filesystem; one that is never met for none."""
    signal = f"{CONTAINERFS}.{kind}"
    if origin is None:
        return Threshold(signal=signal, operator="", value=Amount(percentage=0.0))
    return replace(origin[1], signal=signal)
