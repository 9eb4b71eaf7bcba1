"""Pod specs from the directory of static manifests that the kubelet reads too.

For the pods that are there before an API server is. A static pod's uid is a hash that only the
kubelet makes; what its sandbox says of it is the hash, and the name, which is that of the
manifest and the node's.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from numalign.telemetry.logs import get_logger
from numalign_agent.manifests.errors import ManifestError
from numalign_agent.manifests.manifest import READ_LIMIT, read_pod
from numalign_agent.manifests.placing import Origin
from numalign_agent.nri.pod_specs.port import PodDocument, SourceFailed, Wanted

_log = get_logger("nri")


class ManifestSpecs:
    """The manifests in one directory, or one manifest, for one node."""

    name = "manifests"

    def __init__(self, path: Path, node_name: str) -> None:
        self._path = path
        self._node_name = node_name

    async def find(self, wanted: Wanted) -> PodDocument | None:
        """The manifest of a static pod; None for a pod that is none. Raises SourceFailed."""
        if not wanted.config_hash:
            return None
        return await asyncio.to_thread(self._find, wanted)

    async def close(self) -> None:
        """Nothing is held."""

    def _find(self, wanted: Wanted) -> PodDocument | None:
        try:
            files = sorted(self._path.iterdir()) if self._path.is_dir() else [self._path]
        except OSError as error:
            raise SourceFailed(f"{self._path}: {error.strerror}") from error
        for file in files:
            if file.name.startswith(".") or not file.is_file():
                continue
            try:
                with file.open("rb") as stream:
                    data = stream.read(READ_LIMIT + 1)
                pod = read_pod(data, Origin(self._node_name, str(file)))
            except (OSError, ManifestError) as error:
                # The kubelet does not run it either; another file may be the one.
                _log.debug("a manifest cannot be read", path=str(file), error=str(error))
                continue
            if (pod.namespace, pod.name) == (wanted.namespace, wanted.name):
                return pod.document
        return None
