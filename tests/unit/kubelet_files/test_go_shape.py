"""Decoding rules of the shapes: null, wrong kinds, key spelling, repetition, ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from numalign.kubelet_files.errors import UndecodableCheckpoint
from numalign.kubelet_files.go_collection import INT_KEY, TEXT_KEY, ListOf, MapOf, PointerTo
from numalign.kubelet_files.go_json import parse_json
from numalign.kubelet_files.go_shape import BYTES, INT, TEXT, UINT64, Faults, Shape
from numalign.kubelet_files.go_struct import Member, StructOf


@dataclass(frozen=True, slots=True)
class Pair:
    first: str
    second: dict[int, str] | None


PAIR = StructOf(
    Pair,
    (
        Member(name="First", kind="string", key="first", attribute="first", shape=TEXT),
        Member(
            name="Second",
            kind="map[int]string",
            key="secondPart",
            attribute="second",
            shape=MapOf(INT_KEY, TEXT),
            omit_empty=True,
        ),
    ),
)


def decode(shape: Shape[Any], text: str) -> tuple[Any, str | None]:
    faults = Faults()
    return shape.decode(parse_json(text), shape.zero(), faults), faults.first


@pytest.mark.parametrize(
    ("shape", "text", "expected"),
    [
        pytest.param(TEXT, "null", "", id="null-text"),
        pytest.param(TEXT, r'"\ud800"', "\ufffd", id="lone-surrogate"),
        pytest.param(INT, "null", 0, id="null-integer"),
        pytest.param(INT, "-9223372036854775808", -(2**63), id="lowest-int"),
        pytest.param(INT, "-0", 0, id="minus-zero"),
        pytest.param(UINT64, "18446744073709551615", 2**64 - 1, id="highest-uint"),
        pytest.param(BYTES, "null", None, id="null-bytes"),
        pytest.param(BYTES, '""', b"", id="empty-bytes"),
        pytest.param(ListOf(INT), "[1,null]", (1, 0), id="null-in-list"),
        pytest.param(ListOf(INT), "null", None, id="null-list"),
        pytest.param(MapOf(INT_KEY, INT), '{"+1":2,"-03":4}', {1: 2, -3: 4}, id="integer-keys"),
        pytest.param(MapOf(TEXT_KEY, INT), '{"a":1,"a":2}', {"a": 2}, id="repeated-key"),
        pytest.param(PointerTo(INT), "null", None, id="null-pointer"),
        pytest.param(PAIR, "null", Pair("", None), id="null-struct"),
        pytest.param(PAIR, '{"FIRST":"a","x":1}', Pair("a", None), id="other-case-and-unknown"),
        pytest.param(
            PAIR,
            '{"secondPart":{"1":"a"},"secondPart":{"2":"b"}}',
            Pair("", {1: "a", 2: "b"}),
            id="repeated-map-member-adds",
        ),
    ],
)
def test_decoded(shape: Shape[Any], text: str, expected: object) -> None:
    assert decode(shape, text) == (expected, None)


@pytest.mark.parametrize(
    ("shape", "text", "left"),
    [
        pytest.param(TEXT, "1", "", id="number-for-text"),
        pytest.param(INT, "1.0", 0, id="fraction"),
        pytest.param(INT, "1e2", 0, id="exponent"),
        pytest.param(INT, "true", 0, id="truth-for-integer"),
        pytest.param(INT, "9223372036854775808", 0, id="too-large"),
        pytest.param(UINT64, "-0", 0, id="signed-zero-for-unsigned"),
        pytest.param(UINT64, "-1", 0, id="negative-for-unsigned"),
        pytest.param(BYTES, '"AQ"', None, id="base64-without-padding"),
        pytest.param(BYTES, "{}", None, id="object-for-bytes"),
        pytest.param(ListOf(INT), "{}", None, id="object-for-list"),
        pytest.param(ListOf(INT), '[1,"2",3]', (1, 0, 3), id="bad-element"),
        pytest.param(MapOf(INT_KEY, INT), '{"a":1,"2":2}', {2: 2}, id="bad-key"),
        pytest.param(MapOf(TEXT_KEY, INT), "[]", None, id="list-for-map"),
        pytest.param(PAIR, '{"first":1,"secondPart":{"1":"b"}}', Pair("", {1: "b"}), id="member"),
        pytest.param(PAIR, '"x"', Pair("", None), id="text-for-struct"),
    ],
)
def test_wrong_kind_is_noted_and_the_rest_decoded(
    shape: Shape[Any], text: str, left: object
) -> None:
    value, fault = decode(shape, text)

    assert value == left
    assert fault is not None


def test_first_fault_is_raised() -> None:
    faults = Faults()
    faults.check()
    faults.note("one")
    faults.stop("two")

    assert faults.stopped
    with pytest.raises(UndecodableCheckpoint, match=r"^json: one$"):
        faults.check()


@pytest.mark.parametrize(
    ("shape", "value", "printed", "encoded"),
    [
        pytest.param(BYTES, None, "<nil>", "null", id="null-bytes"),
        pytest.param(BYTES, b"\x0a\xff", "[10 255]", '"Cv8="', id="bytes"),
        pytest.param(ListOf(TEXT), None, "<nil>", "null", id="null-list"),
        pytest.param(ListOf(TEXT), (), "[]", "[]", id="empty-list"),
        pytest.param(MapOf(INT_KEY, INT), None, "<nil>", "null", id="null-map"),
        pytest.param(
            MapOf(INT_KEY, INT),
            {10: 1, 2: 2, -1: 3},
            "map[-1:3 2:2 10:1]",
            '{"-1":3,"10":1,"2":2}',
            id="integers-print-by-number-and-encode-by-text",
        ),
        pytest.param(PointerTo(PAIR), None, "<nil>", "null", id="null-pointer"),
        pytest.param(
            PointerTo(PAIR),
            Pair("a", {}),
            "<*>{First:(string)a Second:(map[int]string)map[]}",
            '{"first":"a"}',
            id="pointer-to-struct",
        ),
    ],
)
def test_printed_and_encoded(shape: Shape[Any], value: object, printed: str, encoded: str) -> None:
    assert shape.dump(value) == printed
    assert shape.encode(value) == encoded
