"""Decoded pods by their bytes, so that one admission parses its pod once in a process.

The requests of an admission carry the same bytes again and again (once a container and call).
"""

from __future__ import annotations

from collections import OrderedDict

from numalign.kube.pod_decode import decode_pod
from numalign.model.pod import Pod

_KEPT = 16


class PodCache:
    """The pods decoded last. One per servicer: everything of one admission hits it."""

    def __init__(self) -> None:
        self._pods: OrderedDict[bytes, Pod] = OrderedDict()
        self._last: tuple[bytes, Pod] | None = None

    def decode(self, data: bytes) -> Pod:
        """The pod; InvalidInput if the bytes are no valid pod."""
        # Most questions are about the pod of the question before. To compare its bytes takes a
        # tenth of what it takes to look them up, which counts for a pod of many containers.
        if self._last is not None and self._last[0] == data:
            return self._last[1]
        pod = self._pods.get(data)
        if pod is None:
            pod = decode_pod(data)
            self._pods[data] = pod
            if len(self._pods) > _KEPT:
                self._pods.popitem(last=False)
        self._last = data, pod
        return pod
