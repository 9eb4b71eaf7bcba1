"""The volumes of a pod as directories, which a kubelet would make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.deploy.manifests import Document

REAL = {"/", "/sys/fs/cgroup"}
"""Directories of the host that are what they are. All others stand below a root of their own:
what is written there must not be found on this machine afterwards."""


class Volumes:
    """The volumes of one pod, below `directory`; what it has of the host is in `host`."""

    def __init__(self, directory: Path, host: Path, objects: Iterable[Document]) -> None:
        self._directory = directory
        self._host = host
        self._config_maps = {
            config["metadata"]["name"]: config["data"]
            for config in objects
            if config["kind"] == "ConfigMap"
        }

    def made(self, pod: Document, token: Mapping[str, str]) -> dict[str, str]:
        """Where each of them is. `token` are the files of a service account."""
        return {
            volume["name"]: str(self._one(volume, token).resolve()) for volume in pod["volumes"]
        }

    def on_host(self, path: str) -> Path:
        """Where a directory of the host is in this test."""
        return Path(path) if path in REAL else self._host / path.strip("/")

    def _one(self, volume: Document, token: Mapping[str, str]) -> Path:
        (kind,) = volume.keys() - {"name"}
        source: Document = volume[kind]
        if kind == "hostPath":
            path: Path = self.on_host(source["path"])
            if source["type"] == "DirectoryOrCreate":
                path.mkdir(parents=True, exist_ok=True)
            assert path.is_dir(), f"{source['path']}, type {source['type']}"
            return path
        path = self._directory / volume["name"]
        path.mkdir(parents=True)
        match kind:
            case "emptyDir":
                path.chmod(0o777)
            case "configMap":
                self._write(path, self._config_maps[source["name"]])
            case "projected":
                self._write(path, {name: token[name] for name in _projected(source)})
            case _:
                raise AssertionError(f"not known to this test: {kind}")
        return path

    @staticmethod
    def _write(directory: Path, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")


def _projected(source: Document) -> list[str]:
    """Names of the files of a projected volume."""
    names: list[str] = []
    for each in source["sources"]:
        if "serviceAccountToken" in each:
            names.append(each["serviceAccountToken"]["path"])
        else:
            (part,) = each.values()
            names += [item["path"] for item in part["items"]]
    return names
