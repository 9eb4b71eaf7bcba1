"""A Node object, and the file that it may come from.

Separate from what else is known of the node: a file is looked at whenever a pod is judged, as
nobody tells when it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from numalign.admission.handlers.node_view import NodeView
from numalign.admission.pod_messages import node_view
from numalign.document.text import read_document
from numalign.errors import ConfigError, InvalidInput
from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import node_from_json
from numalign.telemetry.logs import get_logger

_log = get_logger("node-file")


@dataclass(frozen=True, slots=True)
class KnownNode:
    """A Node object as the predicates see it, and serialised, as others may want it."""

    view: NodeView
    data: bytes

    @classmethod
    def of(cls, message: core_pb2.Node) -> KnownNode:
        """Raises InvalidInput for amounts that are none."""
        return cls(node_view(message), message.SerializeToString())


class NodeFile:
    """A file with a Node object in YAML or JSON. Raises ConfigError if it cannot be used at first.

    `node` is what it said when it could be read last.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._mark()
        self.node = _read(path)

    def latest(self) -> KnownNode:
        """What the file says; where it changed and cannot be read, what it said before."""
        mark = self._mark()
        if mark != self._seen:
            self._seen = mark
            self._read_again()
        return self.node

    def read_view(self) -> NodeView | None:
        """The node, read now (PRED-10); None where the file cannot be read."""
        self._seen = self._mark()
        return self.node.view if self._read_again() else None

    def _read_again(self) -> bool:
        try:
            self.node = _read(self.path)
        except ConfigError as error:
            _log.warning("Node object cannot be read; the last one stays", why=str(error))
            return False
        return True

    def _mark(self) -> tuple[int, int, int] | None:
        """What changes when the file is written; None where it is not there."""
        try:
            status = self.path.stat()
        except OSError:
            # Reading it says what is wrong.
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


def read_node(path: Path) -> core_pb2.Node:
    """The Node object in a file. Raises ConfigError naming the file."""
    return core_pb2.Node.FromString(_read(path).data)


def _read(path: Path) -> KnownNode:
    document = read_document(path)
    if not isinstance(document, Mapping):
        raise ConfigError(f"{path}: is no Node object")
    try:
        message = node_from_json(document)
        if not message.metadata.name:
            raise ConfigError(f"{path}: metadata.name: Required value")
        return KnownNode.of(message)
    except InvalidInput as error:
        raise ConfigError(f"{path}: {error}") from error
