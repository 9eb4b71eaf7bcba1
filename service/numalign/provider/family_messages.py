"""Families of hints to and from their wire form.

Separate from the columns of listed hints, which are most of what is sent and the simpler part.
"""

from __future__ import annotations

from numalign.errors import FieldViolation, InvalidInput
from numalign.model.hint import FamilyList, Piece, SocketRule, Threshold, TopologyHint
from numalign.model.numa_mask import NumaMask
from numalign.v1 import types_pb2 as pb


def described_message(family: FamilyList) -> pb.HintList:
    """The families of a list; the caller adds the columns of its explicit hints."""
    message = pb.HintList(kind=pb.HintList.KIND_HINTS, preferred_count=family.preferred_count)
    for piece in family.pieces:
        message.pieces.add(
            ground=piece.ground, must=piece.must, thresholds=map(_threshold, piece.thresholds)
        )
    if family.sockets is not None:
        message.sockets.members.extend(family.sockets.members)
        message.sockets.touched = family.sockets.touched
    return message


def family_from_message(
    message: pb.HintList, explicit: tuple[TopologyHint, ...], field: str
) -> FamilyList:
    """A list with families; `explicit` are the hints of its columns, `field` its path.

    Raises InvalidInput for a node that must be in a set and may not, and for columns of weights
    that do not match what they are for.
    """
    return FamilyList(
        pieces=tuple(
            _piece(piece, f"{field}.pieces[{i}]") for i, piece in enumerate(message.pieces)
        ),
        explicit=explicit,
        preferred_count=message.preferred_count if message.HasField("preferred_count") else None,
        sockets=SocketRule(tuple(map(NumaMask, message.sockets.members)), message.sockets.touched)
        if message.HasField("sockets")
        else None,
    )


def _threshold(threshold: Threshold) -> pb.Threshold:
    return pb.Threshold(
        need=max(threshold.need, 0),
        weights=threshold.weights,
        group_masks=[mask for mask, _ in threshold.groups],
        group_weights=[value for _, value in threshold.groups],
    )


def _piece(message: pb.Piece, field: str) -> Piece:
    if message.must & ~message.ground:
        raise InvalidInput(FieldViolation(f"{field}.must", "has nodes that ground has not"))
    nodes = message.ground.bit_count()
    thresholds = []
    for i, threshold in enumerate(message.thresholds):
        path = f"{field}.thresholds[{i}]"
        if len(threshold.weights) != nodes:
            raise InvalidInput(
                FieldViolation(
                    f"{path}.weights", f"{len(threshold.weights)} weights for {nodes} nodes"
                )
            )
        if len(threshold.group_masks) != len(threshold.group_weights):
            raise InvalidInput(
                FieldViolation(
                    path,
                    f"columns differ in length: {len(threshold.group_masks)} group_masks, "
                    f"{len(threshold.group_weights)} group_weights",
                )
            )
        thresholds.append(
            Threshold(
                need=threshold.need,
                weights=tuple(threshold.weights),
                groups=tuple(
                    zip(map(NumaMask, threshold.group_masks), threshold.group_weights, strict=True)
                ),
            )
        )
    return Piece(NumaMask(message.ground), NumaMask(message.must), tuple(thresholds))
