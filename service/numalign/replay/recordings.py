"""Recording files: reading them, and knowing by its records what a file holds.

Separate from what is done with a record, so that a new kind needs an entry here and a runner.
Schemas: the READMEs beside the recordings.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
"""A decoded JSON object; the READMEs are its schema."""


class RecordingError(ValueError):
    """A file, a line or a step is not what the READMEs describe."""


class Kind(StrEnum):
    """What a record holds."""

    SCENARIO = "scenario"
    MERGE = "merge"
    CPU_ASSIGNMENT = "cpu_assignment"
    BITMASK = "bitmask"
    CPUSET = "cpuset"
    QUANTITY = "quantity"
    CHECKPOINT = "checkpoint"
    POD_RESOURCES = "pod_resources"
    ALLOCATION_CHECKPOINT = "allocation_checkpoint"
    PREDICATES = "predicates"
    PREEMPTION = "preemption"
    SYSCTL = "sysctl"
    EVICTION_ADMIT = "eviction_admit"
    EVICTION_THRESHOLDS = "eviction_thresholds"
    EVICTION_SERIES = "eviction_series"
    ADMIT_FEATURES = "features"
    ALLOCATION = "allocation"
    POD_RESOURCES_SERVER = "podresources"
    MANIFESTS = "manifests"
    MERGE_SOURCES = "merge_sources"


@dataclass(frozen=True, slots=True)
class Recording:
    """One line of a file. `name` is the record's own, `line` counts from 1."""

    file: str
    line: int
    kind: Kind
    name: str
    record: Json


def read_recordings(path: Path) -> Iterator[Recording]:
    """The records of a `.jsonl` or `.jsonl.gz` file, in order; empty lines do not count.

    Raises RecordingError for a file that cannot be read, a line that is no JSON object, and a
    record of no known kind.
    """
    found = False
    for number, text in enumerate(_lines(path), start=1):
        if not text.strip():
            continue
        found = True
        yield _recording(str(path), number, text)
    if not found:
        raise RecordingError(f"{path}: holds no record")


def kind_of(record: Mapping[str, Any]) -> Kind:
    """What a record holds, by the fields it has. Raises RecordingError for none of the kinds."""
    if "node" in record and "steps" in record:
        return Kind.SCENARIO
    if "case" in record and ("data" in record or "file" in record):
        return Kind.ALLOCATION_CHECKPOINT
    given = record.get("input")
    if isinstance(given, dict) and "expected" in record:
        for kind, holds in _UNIT_KINDS.items():
            if holds(given):
                return kind
    raise RecordingError("is a record of no known kind")


# In this order: several admission kinds hold a pod, too.
_UNIT_KINDS: Mapping[Kind, Callable[[Json], bool]] = {
    Kind.MERGE: lambda given: "providers" in given,
    Kind.CPU_ASSIGNMENT: lambda given: "topology" in given and "num_cpus" in given,
    Kind.BITMASK: lambda given: "a" in given and "op" in given,
    Kind.CPUSET: lambda given: given.get("op") in {"parse", "format"},
    Kind.CHECKPOINT: lambda given: "manager" in given,
    Kind.PREDICATES: lambda given: "other_pods" in given,
    Kind.PREEMPTION: lambda given: "failures" in given,
    Kind.SYSCTL: lambda given: "allowed_unsafe_sysctls" in given,
    Kind.EVICTION_ADMIT: lambda given: "conditions" in given,
    Kind.EVICTION_SERIES: lambda given: "eviction_hard" in given and "steps" in given,
    Kind.EVICTION_THRESHOLDS: lambda given: "eviction_hard" in given,
    Kind.ADMIT_FEATURES: lambda given: "handler" in given,
    Kind.ALLOCATION: lambda given: "allocated" in given,
    Kind.POD_RESOURCES_SERVER: lambda given: "call" in given,
    Kind.MANIFESTS: lambda given: (
        not given.keys().isdisjoint({"content", "manifests", "ops", "responses"})
    ),
    Kind.MERGE_SOURCES: lambda given: "sets" in given,
    Kind.POD_RESOURCES: lambda given: "pod" in given,
    Kind.QUANTITY: lambda given: given.keys() == {"text"},
}


def _recording(file: str, number: int, text: str) -> Recording:
    where = f"{file}:{number}"
    try:
        record = json.loads(text)
    except ValueError as error:
        raise RecordingError(f"{where}: {error}") from error
    if not isinstance(record, dict):
        raise RecordingError(f"{where}: is not a JSON object")
    try:
        kind = kind_of(record)
    except RecordingError as error:
        raise RecordingError(f"{where}: {error}") from None
    name = next((record[key] for key in ("name", "id", "case") if key in record), str(number))
    return Recording(file, number, kind, str(name), record)


def _lines(path: Path) -> Iterator[str]:
    try:
        if path.name.endswith(".gz"):
            with gzip.open(path, "rt", encoding="utf-8") as stream:
                yield from stream
        else:
            with path.open(encoding="utf-8") as stream:
                yield from stream
    except (OSError, EOFError, UnicodeDecodeError) as error:
        # The text of a failed system call has the path once more; damaged archives have none.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise RecordingError(f"{path}: cannot be read: {reason}") from error
