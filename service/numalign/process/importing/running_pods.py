"""The pods of a list that a kubelet runs, each under the uid that its kubelet knows it by.

Separate from importing them: a list from the API server says more, and something else, than
what runs on the node.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.kube.core.v1 import core_pb2

_ENDED = frozenset({"Succeeded", "Failed"})
_MIRROR = "kubernetes.io/config.mirror"
_STATIC_UID = "kubernetes.io/config.hash"


def running_pods(pods: Iterable[core_pb2.Pod]) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    """The pods that have not ended, serialised, and a line for each that has.

    The mirror of a static pod has a uid of its own at the API server; the kubelet's is in an
    annotation.
    """
    running: list[bytes] = []
    ended: list[str] = []
    for pod in pods:
        if pod.status.phase in _ENDED:
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            ended.append(f"pod {name}: has ended ({pod.status.phase})")
            continue
        annotations = pod.metadata.annotations
        if _MIRROR in annotations and annotations.get(_STATIC_UID):
            own = core_pb2.Pod()
            own.CopyFrom(pod)
            own.metadata.uid = annotations[_STATIC_UID]
            running.append(own.SerializeToString())
        else:
            running.append(pod.SerializeToString())
    return tuple(running), tuple(ended)
