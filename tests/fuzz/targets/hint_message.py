"""Hints as providers send them, third parties included."""

from __future__ import annotations

import json

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from tests.fuzz.bending import bent, starts
from tests.fuzz.target import Target

from numalign.errors import InvalidInput
from numalign.model.hint import TopologyHint
from numalign.model.numa_mask import NumaMask
from numalign.provider.hint_messages import hints_from_message, hints_to_message
from numalign.v1 import types_pb2 as pb


def _plain() -> tuple[pb.HintMap, ...]:
    """Lists of hints, and those that stand for no preference and for no hint."""
    one = TopologyHint(NumaMask(1), True)
    both = TopologyHint(NumaMask(3), False)
    lists = (None, (), (one,), (one, both), (TopologyHint(None, True), both))
    maps = [hints_to_message({"cpu": hints, "memory": (one,)}) for hints in lists]
    return tuple(message for message in maps if message is not None)


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


MESSAGES = (*_plain(), *_families())
DOCUMENTS = tuple(json.dumps(json_format.MessageToDict(message)) for message in MESSAGES)

ODD_DOCUMENT = (TypeError, OverflowError, SystemError)
"""What protobuf raises besides where a document is no message. No service reads such documents."""


def run(data: bytes) -> None:
    """Read a mapping of hints; written and read again it must be the same one.

    The first byte says what the others are: the message, or changes to one that is whole, since
    changed bytes rarely are a message at all.
    """
    try:
        if data[:1] < b"\x80":
            message = pb.HintMap.FromString(data[1:])
        else:
            message = json_format.ParseDict(bent(DOCUMENTS, data[1:]), pb.HintMap())
    except (DecodeError, json_format.ParseError, *ODD_DOCUMENT):
        return
    hints = hints_from_message(message)
    again = hints_to_message(hints)
    assert again is not None
    assert hints_from_message(again) == hints


TARGET = Target(
    name="hint_message",
    run=run,
    documented=(InvalidInput,),
    seeds=tuple(b"\0" + message.SerializeToString() for message in MESSAGES)
    + tuple(b"\x80" + each for each in starts(DOCUMENTS)),
)
