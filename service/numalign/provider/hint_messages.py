"""Hints to and from their wire form: packed columns that keep every kind of absence apart.

Separate from the other messages because the Topology Manager, providers and the SDK all need
exactly this and nothing else.
"""

from __future__ import annotations

from numalign.errors import FieldViolation, InvalidInput
from numalign.model.hint import FamilyList, HintList, ProviderHints, TopologyHint
from numalign.model.numa_mask import NumaMask
from numalign.provider.family_messages import described_message, family_from_message
from numalign.v1 import types_pb2 as pb

_NO_PREFERENCE = pb.HintList(kind=pb.HintList.KIND_NO_PREFERENCE)
_IMPOSSIBLE = pb.HintList(kind=pb.HintList.KIND_IMPOSSIBLE)


def hint_to_message(hint: TopologyHint) -> pb.Hint:
    """One hint; a hint without affinity leaves the mask unset."""
    return pb.Hint(mask=hint.mask, preferred=hint.preferred)


def hint_from_message(message: pb.Hint) -> TopologyHint:
    """One hint."""
    mask = NumaMask(message.mask) if message.HasField("mask") else None
    return TopologyHint(mask, message.preferred)


def list_to_message(hints: HintList) -> pb.HintList:
    """The hints of one resource: nil, empty, columns, or families with columns."""
    if hints is None:
        return _NO_PREFERENCE
    if isinstance(hints, FamilyList):
        if not hints.pieces:
            return list_to_message(hints.explicit)
        described = described_message(hints)
        if hints.explicit:
            described.MergeFrom(list_to_message(hints.explicit))
        return described
    if not hints:
        return _IMPOSSIBLE
    affinities = [hint.mask is not None for hint in hints]
    return pb.HintList(
        kind=pb.HintList.KIND_HINTS,
        masks=[hint.mask or 0 for hint in hints],
        preferred=[hint.preferred for hint in hints],
        has_affinity=[] if all(affinities) else affinities,
    )


def list_from_message(message: pb.HintList, field: str) -> HintList:
    """The hints of one resource; `field` is its path for the error.

    Raises InvalidInput for columns of different lengths, families that contradict themselves,
    or an unknown kind.
    """
    if message.kind == pb.HintList.KIND_NO_PREFERENCE:
        return None
    if message.kind == pb.HintList.KIND_IMPOSSIBLE:
        return ()
    if message.kind != pb.HintList.KIND_HINTS:
        raise InvalidInput(FieldViolation(f"{field}.kind", f"unknown kind {message.kind}"))
    if message.pieces:
        return family_from_message(message, _columns(message, field), field)
    if len(message.masks) == 0:
        raise InvalidInput(FieldViolation(f"{field}.masks", "a list of hints has no hint"))
    return _columns(message, field)


def _columns(message: pb.HintList, field: str) -> tuple[TopologyHint, ...]:
    masks, preferred, affinities = message.masks, message.preferred, message.has_affinity
    if len(preferred) != len(masks) or len(affinities) not in {0, len(masks)}:
        raise InvalidInput(
            FieldViolation(
                field,
                f"columns differ in length: {len(masks)} masks, {len(preferred)} preferred, "
                f"{len(affinities)} has_affinity",
            )
        )
    if not affinities:
        return tuple(map(_hint, masks, preferred))
    return tuple(
        TopologyHint(NumaMask(mask) if has else None, flag)
        for mask, flag, has in zip(masks, preferred, affinities, strict=True)
    )


def hints_to_message(hints: ProviderHints) -> pb.HintMap | None:
    """A provider's mapping; None stays None, so that the field is left unset."""
    if hints is None:
        return None
    return pb.HintMap(resources={resource: list_to_message(hints[resource]) for resource in hints})


def hints_from_message(message: pb.HintMap, field: str = "hints") -> ProviderHints:
    """A provider's mapping; the caller looks first whether the field is set."""
    return {
        resource: list_from_message(hints, f"{field}.resources[{resource}]")
        for resource, hints in message.resources.items()
    }


def _hint(mask: int, preferred: bool) -> TopologyHint:
    return TopologyHint(NumaMask(mask), preferred)
