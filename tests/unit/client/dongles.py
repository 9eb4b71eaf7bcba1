"""A provider of dongles for tests, and pods that ask for them."""

from __future__ import annotations

from collections.abc import Mapping

from numalign.kube.core.v1 import core_pb2
from numalign_client.sdk import (
    CannotAllocate,
    CannotJudge,
    Grant,
    Hints,
    NotYet,
    SimpleHintProvider,
    requested,
)

DONGLE = "example.com/dongle"
NODE_OF = {"d0": 0, "d1": 0, "d2": 1}


class Dongles(SimpleHintProvider):
    """d0 and d1 on node 0, d2 on node 1. Asking for 13 makes no sense, for 14 is too early."""

    name = "dongles"
    resources = (DONGLE,)

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.fails_to_release = False

    def hints(self, _: core_pb2.Pod, container: core_pb2.Container) -> Hints | None:
        wanted = requested(container, DONGLE)
        if not wanted:
            return None
        self._judge(wanted)
        free = [node for i, node in NODE_OF.items() if i not in self.taken(DONGLE)]
        masks = ((0,), (1,), (0, 1))
        return {
            DONGLE: [(m, len(m) == 1) for m in masks if sum(n in m for n in free) >= wanted],
        }

    def allocate(
        self, _: core_pb2.Pod, container: core_pb2.Container, nodes: frozenset[int] | None
    ) -> Mapping[str, Grant]:
        wanted = requested(container, DONGLE)
        if not wanted:
            return {}
        self._judge(wanted)
        free = [i for i in NODE_OF if i not in self.taken(DONGLE)]
        chosen = [i for i in free if nodes is None or NODE_OF[i] in nodes][:wanted]
        if len(chosen) < wanted:
            raise CannotAllocate("too few dongles", reason="DongleError")
        by_node: dict[int, list[str]] = {}
        for i in chosen:
            by_node.setdefault(NODE_OF[i], []).append(i)
        return {DONGLE: Grant(ids_by_node=by_node)}

    def committed(self, pod_uid: str) -> None:
        self.heard.append(("committed", pod_uid))

    def release(self, pod_uid: str) -> None:
        if self.fails_to_release:
            raise OSError("the licence server does not answer")
        self.heard.append(("released", pod_uid))

    @staticmethod
    def _judge(wanted: int) -> None:
        if wanted == 13:
            raise CannotJudge("13 dongles make no sense")
        if wanted == 14:
            raise NotYet("dongles are being counted", reason="Counting", retry_after=2.5)


def pod(uid: str, *wanted: int, init: tuple[int, ...] = ()) -> core_pb2.Pod:
    """A pod whose containers c0, c1, ... and init containers i0, i1, ... want dongles."""
    message = core_pb2.Pod(metadata=core_pb2.ObjectMeta(uid=uid, name=uid))
    for prefix, containers, amounts in (
        ("i", message.spec.init_containers, init),
        ("c", message.spec.containers, wanted),
    ):
        for number, amount in enumerate(amounts):
            container = containers.add(name=f"{prefix}{number}")
            if amount:
                container.resources.limits[DONGLE].string = str(amount)
    return message
