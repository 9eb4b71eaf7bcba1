"""A node's root file system with others in it who hand out resources."""

from __future__ import annotations

import json
import socket
from pathlib import Path

KUBELET = "var/lib/kubelet"


class FakeNode:
    """Below `root`; `close` ends the sockets on which somebody answers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._listeners: list[socket.socket] = []

    def file(self, name: str, text: str = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def state(self, name: str, policy: str) -> Path:
        return self.file(f"{KUBELET}/{name}", json.dumps({"policyName": policy, "checksum": 1}))

    def configuration(self, name: str, **keys: str) -> Path:
        return self.file(name, json.dumps({"kind": "KubeletConfiguration", **keys}))

    def listening(self, name: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(1)
        self._listeners.append(listener)
        return path

    def left_behind(self, name: str) -> Path:
        path = self.listening(name)
        self._listeners.pop().close()
        return path

    def process(self, pid: int, *command: str) -> Path:
        return self.file(f"proc/{pid}/cmdline", "\0".join((*command, ""))).parent

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
