"""Inputs out of the recordings: what real kubelets read and wrote."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).parents[1] / "conformance" / "recordings"
FIXTURES = Path(__file__).parents[1] / "fixtures"


def lines_of(name: str) -> Iterator[dict[str, Any]]:
    """The records of a file of recordings, such as `unit/quantity.jsonl.gz`."""
    path = RECORDINGS / name
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    for line in text.splitlines():
        yield json.loads(line)


def unit_inputs(name: str) -> Iterator[dict[str, Any]]:
    """The inputs of a file of unit recordings."""
    for record in lines_of(f"unit/{name}.jsonl.gz"):
        yield record["input"]


def pods(limit: int) -> tuple[str, ...]:
    """Different and small pods of the recorded scenarios, as JSON."""
    found: dict[str, None] = {}
    for name in ("pods", "pod_level", "random_init_sidecar", "devices"):
        for record in lines_of(f"scenarios/{name}.jsonl.gz"):
            for step in record["steps"]:
                if "pod" in step and isinstance(step["pod"], dict):
                    found[json.dumps({"apiVersion": "v1", "kind": "Pod", **step["pod"]})] = None
    small = sorted(found, key=lambda text: (len(text), text))[: 4 * limit]
    return tuple(small[:: max(1, len(small) // limit)][:limit])


def machines(limit: int) -> tuple[str, ...]:
    """The smallest machines of the recorded scenarios, as JSON."""
    found = {
        json.dumps(record["node"]["machine"])
        for name in ("pods", "machines", "memory")
        for record in lines_of(f"scenarios/{name}.jsonl.gz")
    }
    return tuple(sorted(found, key=lambda text: (len(text), text))[:limit])
