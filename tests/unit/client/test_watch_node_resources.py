"""Watching what a node has: told once each, resumed by itself, ended by what cannot help."""

from __future__ import annotations

import pytest
from grpc import StatusCode

from numalign.v1.node_resources_pb2 import NodeResources
from numalign_client.errors import AdmissionError
from numalign_client.watching import FIRST_WAIT, LONGEST_WAIT, PictureCursor


def failed(code: StatusCode) -> AdmissionError:
    return AdmissionError(code, "no")


def test_the_same_picture_is_told_once() -> None:
    cursor = PictureCursor()

    told = [cursor.is_new(NodeResources(revision=r)) for r in (1, 1, 2, 1)]

    assert told == [True, False, True, True]


def test_waits_grow_until_a_picture_comes() -> None:
    cursor = PictureCursor()

    waits = [cursor.interrupted(failed(StatusCode.UNAVAILABLE)) for _ in range(8)]
    cursor.is_new(NodeResources())

    assert waits[:3] == [FIRST_WAIT, 2 * FIRST_WAIT, 4 * FIRST_WAIT]
    assert waits[-1] == LONGEST_WAIT
    assert cursor.interrupted(None) == FIRST_WAIT


def test_an_error_that_asking_again_cannot_help_is_raised() -> None:
    with pytest.raises(AdmissionError):
        PictureCursor().interrupted(failed(StatusCode.UNIMPLEMENTED))
