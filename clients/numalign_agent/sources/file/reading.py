"""The manifests of a path and the pods that they gave: what a list finds, what a change means.

Separate from watching, so that the same steps can be played one by one. Every call looks at
the file system and takes as long as that does.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from numalign_agent.manifests.errors import ManifestError
from numalign_agent.manifests.manifest import READ_LIMIT, read_pod
from numalign_agent.manifests.placing import Origin
from numalign_agent.pod import AgentPod
from numalign_agent.sources.reading import Reading

DOES_NOT_EXIST = "path does not exist, ignoring"


class FileEvent(StrEnum):
    """What was noticed about one file (CFG-6)."""

    ADD = "add"
    MODIFY = "modify"
    DELETE = "delete"


class ManifestFiles:
    """The files at `path` and their pods, by `<namespace>/<name>`.

    `problems` names every file that gives no pod, and why.
    """

    def __init__(self, path: Path, node_name: str) -> None:
        self._path = path
        self._node_name = node_name
        self._pods: dict[str, AgentPod] = {}
        self._key_of_file: dict[Path, str] = {}
        self.problems: dict[str, str] = {}

    def list(self) -> Reading:
        """Look at everything (CFG-3 to CFG-5)."""
        try:
            mode = self._path.stat().st_mode
        except FileNotFoundError:
            self._replace({}, {str(self._path): DOES_NOT_EXIST})
            return Reading((), DOES_NOT_EXIST)
        except OSError as error:
            return self._failed(str(self._path), _os_text("stat", self._path, error))
        if stat.S_ISDIR(mode):
            return self._list_directory()
        return self._list_file()

    def change(self, event: FileEvent, path: Path) -> Reading:
        """Take in one change (CFG-6). A file that cannot be used leaves everything as it was."""
        if path.name.startswith("."):
            return Reading()
        return self._remove(path) if event is FileEvent.DELETE else self._put(path)

    def _list_directory(self) -> Reading:
        found: dict[Path, AgentPod] = {}
        problems: dict[str, str] = {}
        try:
            names = sorted(entry.name for entry in self._path.iterdir())
        except OSError as error:
            return self._failed(str(self._path), _os_text("open", self._path, error))
        for name in names:
            if name.startswith("."):
                continue
            path = self._path / name
            try:
                found[path] = self._read(path)
            except ManifestError as error:
                problems[str(path)] = str(error)
        self._replace(found, {**problems, **_outdone(found)})
        return Reading(tuple(self._pods.values()))

    def _list_file(self) -> Reading:
        try:
            pod = self._read(self._path)
        except ManifestError as error:
            return self._failed(str(self._path), str(error))
        self._replace({self._path: pod}, {})
        return Reading((pod,))

    def _put(self, path: Path) -> Reading:
        try:
            pod = self._read(path)
        except ManifestError as error:
            self.problems[str(path)] = str(error)
            return Reading(error=f'can\'t process config file "{path}": {error}')
        self.problems.pop(str(path), None)
        key = _key(pod)
        self._pods[key] = pod
        self._key_of_file[path] = key
        return Reading(tuple(self._pods.values()))

    def _remove(self, path: Path) -> Reading:
        self.problems.pop(str(path), None)
        key = self._key_of_file.get(path)
        if key is None:
            return Reading()
        if key not in self._pods:
            return Reading(error=f"the pod with key {key} doesn't exist in cache")
        del self._pods[key], self._key_of_file[path]
        return Reading(tuple(self._pods.values()))

    def _replace(self, found: Mapping[Path, AgentPod], problems: dict[str, str]) -> None:
        self._key_of_file = {path: _key(pod) for path, pod in found.items()}
        self._pods = {_key(pod): pod for pod in found.values()}
        self.problems = problems

    def _failed(self, place: str, why: str) -> Reading:
        self.problems[place] = why
        return Reading(error=why)

    def _read(self, path: Path) -> AgentPod:
        """The pod of one file; ManifestError where there is none."""
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for a writer
                raise ManifestError("is not a regular file")
            with path.open("rb") as stream:
                data = stream.read(READ_LIMIT + 1)
        except OSError as error:
            raise ManifestError(_os_text("open", path, error)) from error
        return read_pod(data, Origin(self._node_name, str(path)))


def _outdone(found: Mapping[Path, AgentPod]) -> dict[str, str]:
    """Files whose pod does not count, because a later one has a pod of the same name."""
    last = {_key(pod): path for path, pod in found.items()}
    return {
        str(path): f"pod {_key(pod)} is in {last[_key(pod)]} too, which counts instead"
        for path, pod in found.items()
        if last[_key(pod)] != path
    }


def _key(pod: AgentPod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _os_text(call: str, path: Path, error: OSError) -> str:
    return f"{call} {path}: {(error.strerror or str(error)).lower()}"
