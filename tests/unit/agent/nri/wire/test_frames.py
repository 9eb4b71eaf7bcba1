"""Both layers of framing: any cut of the bytes gives the same messages, and Go can read ours."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.agent.nri.go_framing import GoConnection, muxed, split_trunk, ttrpc

from numalign_agent.nri.wire.errors import MessageTooLong, ProtocolError
from numalign_agent.nri.wire.trunk_frames import (
    LARGEST_PAYLOAD,
    READ_BUFFER,
    TrunkReader,
    frames_of,
)
from numalign_agent.nri.wire.ttrpc_frames import (
    DATA,
    LARGEST_DATA,
    REQUEST,
    RESPONSE,
    Frame,
    FrameReader,
    encoded,
)

SIZES = st.one_of(
    st.integers(0, 40),
    st.integers(READ_BUFFER - 12, READ_BUFFER + 12),
    st.integers(2 * READ_BUFFER - 12, 2 * READ_BUFFER + 12),
    st.integers(0, 20_000),
)
BODIES = st.builds(lambda size, seed: bytes([seed]) * size, SIZES, st.integers(0, 255))
FRAMES = st.builds(
    Frame, st.integers(1, 1 << 31), st.sampled_from([REQUEST, RESPONSE, DATA]), BODIES
)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(c % (len(data) + 1) for c in cuts)})
    return [data[a:b] for a, b in pairwise(edges)]


@given(st.lists(FRAMES, max_size=6), st.lists(st.integers(0, 1 << 30), max_size=12))
def test_ttrpc_frames_come_out_of_any_pieces(frames: list[Frame], cuts: list[int]) -> None:
    data = b"".join(map(encoded, frames))
    reader = FrameReader()

    assert [f for piece in cut(data, cuts) for f in reader.feed(piece)] == frames


@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 7]), BODIES), max_size=6),
    st.integers(1, 6000),
    st.lists(st.integers(0, 1 << 30), max_size=12),
)
def test_trunk_frames_come_out_of_any_pieces(
    sent: list[tuple[int, bytes]], pieces: int, cuts: list[int]
) -> None:
    data = b"".join(muxed(connection, body, pieces) for connection, body in sent)
    reader = TrunkReader()
    got: dict[int, bytes] = {}
    for piece in cut(data, cuts):
        for connection, chunk in reader.feed(piece):
            got[connection] = got.get(connection, b"") + chunk
    want: dict[int, bytes] = {}
    for connection, body in sent:
        if body:
            want[connection] = want.get(connection, b"") + body

    assert got == want


@given(st.lists(BODIES, min_size=1, max_size=8))
def test_go_reads_what_is_sent(bodies: list[bytes]) -> None:
    connection = GoConnection()
    got = []
    for stream, body in enumerate(bodies):
        for _, frame in split_trunk(frames_of(2, encoded(Frame(stream, REQUEST, body)))):
            connection.put(frame)
            got += connection.messages()

    assert got == [(stream, REQUEST, body) for stream, body in enumerate(bodies)]


@given(st.lists(BODIES, min_size=1, max_size=8))
def test_go_reads_what_has_piled_up(bodies: list[bytes]) -> None:
    connection = GoConnection()
    for stream, body in enumerate(bodies):
        for _, frame in split_trunk(frames_of(2, encoded(Frame(stream, REQUEST, body)))):
            connection.put(frame)

    assert connection.messages() == [(s, REQUEST, body) for s, body in enumerate(bodies)]


@pytest.mark.parametrize(
    ("size", "frames"),
    [
        pytest.param(0, [10], id="empty"),
        pytest.param(READ_BUFFER - 10, [READ_BUFFER], id="just-one-buffer"),
        pytest.param(READ_BUFFER - 9, [READ_BUFFER, 1], id="one-byte-more"),
        pytest.param(100_000, [READ_BUFFER, 100_010 - READ_BUFFER], id="long"),
        pytest.param(LARGEST_DATA, [READ_BUFFER, LARGEST_DATA + 10 - READ_BUFFER], id="longest"),
    ],
)
def test_how_a_message_is_split(size: int, frames: list[int]) -> None:
    message = encoded(Frame(1, REQUEST, b"x" * size))

    assert [len(body) for _, body in split_trunk(frames_of(1, message))] == frames


def test_a_message_may_not_be_longer_than_a_peer_takes() -> None:
    with pytest.raises(MessageTooLong, match="4194305 bytes, at most 4194304"):
        encoded(Frame(1, REQUEST, b"x" * (LARGEST_DATA + 1)))


@settings(max_examples=8)
@given(st.lists(st.integers(0, 1 << 30), max_size=4))
def test_a_message_that_is_too_long_is_passed_over(cuts: list[int]) -> None:
    before, after = Frame(1, REQUEST, b"before"), Frame(5, REQUEST, b"after")
    long = struct.pack(">IIBB", LARGEST_DATA + 1, 3, REQUEST, 0) + bytes(LARGEST_DATA + 1)
    reader = FrameReader()
    got = [
        frame
        for piece in cut(encoded(before) + long + encoded(after), cuts)
        for frame in reader.feed(piece)
    ]

    assert got == [before, Frame(3, REQUEST, None), after]


def test_the_largest_message_that_is_read() -> None:
    reader = FrameReader()

    (frame,) = reader.feed(ttrpc(1, REQUEST, b"x" * LARGEST_DATA))

    assert frame.data is not None
    assert len(frame.data) == LARGEST_DATA


@pytest.mark.parametrize(
    ("header", "text"),
    [
        pytest.param((0, 5), "connection 0, which is reserved", id="reserved"),
        pytest.param((1, LARGEST_PAYLOAD + 1), "4194315 bytes, at most 4194314", id="too-long"),
    ],
)
def test_what_no_trunk_frame_may_be(header: tuple[int, int], text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        list(TrunkReader().feed(struct.pack(">II", *header)))
