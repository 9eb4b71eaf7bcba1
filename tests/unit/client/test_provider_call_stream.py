"""A provider on the SDK, asked over one open stream."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.unit.client.dongles import DONGLE, Dongles, pod

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import call_stream_pb2 as cs
from numalign.v1 import call_stream_pb2_grpc as cs_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub
from numalign_client.sdk import Hints, ProviderServer

SERVICE = "/numalign.v1.HintProvider"
SECONDS = 60

Ask = Callable[..., cs.CarryResponse]


class Broken(Dongles):
    """Fails as no author wants it to."""

    def hints(self, _: core_pb2.Pod, container: core_pb2.Container) -> Hints | None:
        raise ZeroDivisionError(f"no {container.name}")


@pytest.fixture
def serve() -> Iterator[Callable[[Dongles], grpc.Channel]]:
    """Serves a provider; a channel to it."""
    with tempfile.TemporaryDirectory(prefix="na-") as directory:
        path = Path(directory) / "s"
        opened: list[Any] = []

        def served(provider: Dongles) -> grpc.Channel:
            server = ProviderServer(provider, path)
            server.start()
            channel = grpc.insecure_channel(f"unix:{path}")
            opened.extend((server, channel))
            return channel

        yield served
        for each in reversed(opened):
            if isinstance(each, ProviderServer):
                each.stop(0)
            else:
                each.close()


def answers(channel: grpc.Channel, *requests: cs.CarryRequest) -> list[cs.CarryResponse]:
    """What comes for these messages, after the first response."""
    ready, *rest = cs_grpc.CallStreamStub(channel).Carry(iter(requests), timeout=SECONDS)
    assert ready == cs.CarryResponse()
    return rest


def call(number: int, method: str, request: Any) -> cs.CarryRequest:
    data = request if isinstance(request, bytes) else request.SerializeToString()
    return cs.CarryRequest(id=number, method=f"{SERVICE}/{method}", request=data)


def hints_of(uid: str) -> hp.GetTopologyHintsRequest:
    return hp.GetTopologyHintsRequest(
        admission_id=uid, pod=pod(uid, 1).SerializeToString(), container="c0"
    )


def test_it_says_that_it_has_streams(serve: Callable[[Dongles], grpc.Channel]) -> None:
    stub = HintProviderStub(serve(Dongles()))
    assert stub.GetInfo(hp.GetInfoRequest(), timeout=SECONDS).call_stream


def test_answers_are_those_of_calls_of_their_own(
    serve: Callable[[Dongles], grpc.Channel],
) -> None:
    channel = serve(Dongles())
    alone = HintProviderStub(channel).GetTopologyHints(hints_of("a"), timeout=SECONDS)
    first, second = answers(
        channel,
        call(1, "GetTopologyHints", hints_of("a")),
        cs.CarryRequest(id=1),
        call(2, "Commit", hp.CommitRequest(admission_id="nobody")),
    )
    assert (first.id, second.id) == (1, 2)
    assert hp.GetTopologyHintsResponse.FromString(first.response) == alone
    assert DONGLE in str(alone.hints)
    assert hp.CommitResponse.FromString(second.response).instance_id == alone.instance_id


@pytest.mark.parametrize(
    ("method", "request_", "code", "text"),
    [
        (
            "GetTopologyHints",
            hp.GetTopologyHintsRequest(pod=pod("a", 1).SerializeToString(), container="x"),
            grpc.StatusCode.INVALID_ARGUMENT,
            'container: pod "a" has no container "x"',
        ),
        ("Nothing", b"", grpc.StatusCode.UNIMPLEMENTED, "Method not found!"),
        ("Watch", b"", grpc.StatusCode.UNIMPLEMENTED, "Method not found!"),
        ("Commit", b"\xff", grpc.StatusCode.INTERNAL, "Exception deserializing request: "),
    ],
    ids=["aborted", "no method", "a stream itself", "no message"],
)
def test_failures_are_told(
    serve: Callable[[Dongles], grpc.Channel],
    method: str,
    request_: Any,
    code: grpc.StatusCode,
    text: str,
) -> None:
    failed, after = answers(
        serve(Dongles()), call(1, method, request_), call(2, "GetInfo", hp.GetInfoRequest())
    )
    assert (failed.id, failed.failure.code) == (1, code.value[0])
    assert failed.failure.message.startswith(text)
    assert not after.HasField("failure")


def test_an_error_of_the_author_is_told_and_ends_nothing_else(
    serve: Callable[[Dongles], grpc.Channel],
) -> None:
    failed, after = answers(
        serve(Broken()),
        call(1, "GetTopologyHints", hints_of("a")),
        call(2, "GetInfo", hp.GetInfoRequest()),
    )
    assert failed.failure.code == grpc.StatusCode.UNKNOWN.value[0]
    assert failed.failure.message == "Exception calling application: no c0"
    assert not after.HasField("failure")
