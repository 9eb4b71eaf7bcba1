"""Hints as providers send them, third parties included."""

from __future__ import annotations

from google.protobuf.message import DecodeError
from tests.fuzz.target import Target

from numalign.errors import InvalidInput
from numalign.model.hint import TopologyHint
from numalign.model.numa_mask import NumaMask
from numalign.provider.hint_messages import hints_from_message, hints_to_message
from numalign.v1 import types_pb2 as pb


def run(data: bytes) -> None:
    """Read a mapping of hints; written and read again it must be the same one."""
    try:
        message = pb.HintMap.FromString(data)
    except DecodeError:
        return
    hints = hints_from_message(message)
    again = hints_to_message(hints)
    assert again is not None
    assert hints_from_message(again) == hints


def _seeds() -> tuple[bytes, ...]:
    one = TopologyHint(NumaMask(1), True)
    both = TopologyHint(NumaMask(3), False)
    lists = (None, (), (one,), (one, both), (TopologyHint(None, True), both))
    maps = [hints_to_message({"cpu": hints, "memory": (one,)}) for hints in lists]
    return tuple(message.SerializeToString() for message in (*maps, *_families()) if message)


def _families() -> tuple[pb.HintMap, ...]:
    """Families of sets, right ones and such as contradict themselves."""
    threshold = pb.Threshold(need=3, weights=[2, 2], group_masks=[3], group_weights=[1])
    pieces = (
        pb.Piece(ground=3, must=1, thresholds=[threshold]),
        pb.Piece(ground=1, must=2),
        pb.Piece(ground=7, thresholds=[threshold]),
    )
    kinds = (pb.HintList.KIND_HINTS, pb.HintList.KIND_UNSPECIFIED)
    described = [
        pb.HintList(kind=kind, pieces=[piece], preferred_count=1, masks=[1], preferred=[True])
        for kind in kinds
        for piece in pieces
    ]
    described.append(pb.HintList(kind=pb.HintList.KIND_HINTS, masks=[1, 2], preferred=[True]))
    described[0].sockets.members.append(3)
    return tuple(pb.HintMap(resources={"cpu": hints}) for hints in described)


TARGET = Target(
    name="hint_message",
    run=run,
    documented=(InvalidInput,),
    seeds=_seeds(),
)
