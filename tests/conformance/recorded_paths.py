"""Comparing a replayed result with a recording, as far as the recording is determined.

Separate from the runners: the README of the scenarios says what a recording may leave open,
and this is that rule and nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

KindOf = Callable[[str], object]
"""Device id to what has to agree: the id itself, or its NUMA list."""


def differences(
    recorded: Any,
    actual: Any,
    path: str,
    open_paths: tuple[str, ...],
    kind_of: KindOf,
) -> Iterator[str]:
    """A line for every place where `actual` is not what was recorded.

    A place that an open path covers (itself or a prefix of it) is not looked at. Lists of
    ids are sets written in sorted order, so an open position of one does not name a device:
    as many members may differ as positions are open.
    """
    if _is_open(path, open_paths):
        return
    if isinstance(recorded, dict) and isinstance(actual, dict):
        for key in sorted(recorded.keys() | actual.keys()):
            below = f"{path}.{key}"
            if key in recorded and key in actual:
                yield from differences(recorded[key], actual[key], below, open_paths, kind_of)
            elif not _is_open(below, open_paths):
                yield f"{below}: {'missing' if key in recorded else 'not recorded'}"
    elif _is_ids(recorded) and _is_ids(actual):
        left = Counter(kind_of(id_) for id_ in recorded)
        right = Counter(kind_of(id_) for id_ in actual)
        may_differ = sum(_is_open(f"{path}[{i}]", open_paths) for i in range(len(recorded)))
        if len(recorded) != len(actual) or (left - right).total() > may_differ:
            yield f"{path}: {recorded} recorded, {actual} replayed"
    elif isinstance(recorded, list) and isinstance(actual, list):
        if len(recorded) != len(actual):
            yield f"{path}: {recorded} recorded, {actual} replayed"
            return
        for index, (left, right) in enumerate(zip(recorded, actual, strict=True)):
            yield from differences(left, right, f"{path}[{index}]", open_paths, kind_of)
    elif recorded != actual:
        yield f"{path}: {recorded!r} recorded, {actual!r} replayed"


def _is_open(path: str, open_paths: tuple[str, ...]) -> bool:
    return any(
        path == open_path or (path.startswith(open_path) and path[len(open_path)] in ".[")
        for open_path in open_paths
    )


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)
