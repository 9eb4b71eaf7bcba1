"""The text of configuration documents, YAML and JSON."""

from __future__ import annotations

import json

import yaml
from tests.fuzz.target import Target
from tests.fuzz.targets.config import DOCUMENTS

from numalign.document.problems import DocumentError
from numalign.document.text import parse_document


def run(data: bytes) -> None:
    """Read a text, as the first byte says: as JSON or as YAML."""
    name = "a.json" if data[:1] == b"j" else "a.yaml"
    parse_document(data[1:].decode("utf-8", "replace"), name)


TARGET = Target(
    name="document",
    run=run,
    documented=(DocumentError,),
    seeds=tuple(b"j" + json.dumps(each).encode() for each in DOCUMENTS)
    + tuple(b"y" + yaml.safe_dump(each).encode() for each in DOCUMENTS)
    + (
        b"ya: &a [1, *a]\n",
        b"y? [a]\n: 2\n",
        b"y!!binary =\n",
        b"y2001-13-01\n",
        b"y!!bool 2\n",
        b"y!!int ''\n",
        b"y!!timestamp x\n",
        b"y!!float x\n",
        b"y!!set [a]\n",
        b"y!!python/none x",
        b"j" + b"[" * 4000,
        b"y" + b"[" * 4000,
        b"j[1e999]",
    ),
)
