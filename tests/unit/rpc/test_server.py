"""A server on a Unix socket: its file, health, reflection, and how it stops."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from tests.unit.rpc.echo import Echo, EchoStub, registration
from tests.waiting import LONG

from numalign.config.settings import SocketSettings
from numalign.errors import ConfigError, StartError
from numalign.rpc.channel import open_channel, socket_target
from numalign.rpc.server import ServiceServer

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


def server_at(path: Path, settings: SocketSettings | None = None) -> ServiceServer:
    return ServiceServer([registration(Echo())], path, settings or SocketSettings())


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def entries_of(directory: Path) -> list[Path]:
    return list(directory.iterdir())


def make_mode(path: Path, mode: int) -> None:
    path.chmod(mode)


def health_of(channel: aio.Channel) -> Any:
    return health_pb2_grpc.HealthStub(channel)


async def check(stub: Any, service: str = "") -> int:
    response = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    return int(response.status)


async def test_services_that_start_at_once_share_the_directory(
    run_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir

    def overtaken(path: Path, **how: Any) -> None:
        make(path, **how)
        make(path, **how)

    monkeypatch.setattr(Path, "mkdir", overtaken)
    server = server_at(run_directory / "numalign" / "cpu.sock")
    await server.start()
    assert server.path.exists()
    await server.stop(0)


async def test_the_directory_and_the_socket_are_as_configured(run_directory: Path) -> None:
    path = run_directory / "numalign" / "cpu.sock"
    server = server_at(path, SocketSettings(mode=0o600))
    umask = os.umask(0o022)
    os.umask(umask)
    await server.start()

    assert mode_of(path) == 0o600
    assert mode_of(path.parent) == 0o750
    assert os.umask(umask) == umask
    await server.stop(0)
    assert entries_of(path.parent) == []


async def test_an_existing_directory_is_left_as_it_is(run_directory: Path) -> None:
    make_mode(run_directory, 0o711)
    server = server_at(run_directory / "s")
    await server.start()
    assert mode_of(run_directory) == 0o711
    await server.stop(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("by_name", [True, False], ids=["names", "numbers"])
async def test_owner_and_group(run_directory: Path, by_name: bool) -> None:
    user, group = pwd.getpwnam("nobody"), grp.getgrall()[-1]
    settings = SocketSettings(
        mode=0o660,
        owner=user.pw_name if by_name else user.pw_uid,
        group=group.gr_name if by_name else group.gr_gid,
    )
    path = run_directory / "new" / "s"
    server = server_at(path, settings)
    await server.start()
    for given in (path, path.parent):
        assert (given.stat().st_uid, given.stat().st_gid) == (user.pw_uid, group.gr_gid)
    await server.stop(0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            SocketSettings(owner="no-such"),
            r"\.owner: there is no user \"no-such\" here",
            id="owner",
        ),
        pytest.param(
            SocketSettings(group="no-such"),
            r"\.group: there is no group \"no-such\" here",
            id="group",
        ),
    ],
)
async def test_unknown_accounts(
    run_directory: Path, settings: SocketSettings, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        await server_at(run_directory / "s", settings).start()


async def test_a_path_that_is_too_long_is_named(run_directory: Path) -> None:
    path = run_directory / ("x" * 107)
    with pytest.raises(ConfigError, match=f"{path}: .* bytes, at most 107"):
        await server_at(path).start()


async def test_the_longest_path_works(run_directory: Path) -> None:
    name = "é" * 20
    path = run_directory / (name + "x" * (107 - len(os.fsencode(run_directory / name))))
    assert len(os.fsencode(path)) == 107
    server = server_at(path)
    await server.start()
    async with open_channel(path) as channel:
        assert await EchoStub(channel).Unary(b"x") == b"x"
    await server.stop(0)


async def test_odd_characters_in_the_path(run_directory: Path) -> None:
    path = run_directory / "a b%20?#.sock"
    server = server_at(path)
    await server.start()
    assert path.is_socket()
    async with open_channel(path) as channel:
        assert await EchoStub(channel).Unary(b"x") == b"x"
    await server.stop(0)


async def test_places_where_no_socket_can_be(run_directory: Path) -> None:
    file = run_directory / "file"
    file.write_text("kept")
    for path in (file / "s", Path("/proc/numalign/s"), Path("/proc/s"), Path("relative/s"), file):
        with pytest.raises(ConfigError, match=f"socket {path}: "):
            await server_at(path).start()
    assert file.read_text() == "kept"


async def test_a_stale_socket_is_replaced(run_directory: Path) -> None:
    path = run_directory / "s"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    server = server_at(path)
    await server.start()
    async with open_channel(path) as channel:
        assert await EchoStub(channel).Unary(b"x") == b"x"
    await server.stop(0)


async def test_a_living_server_keeps_its_socket(run_directory: Path) -> None:
    path = run_directory / "s"
    first = server_at(path)
    await first.start()
    second = server_at(path)
    with pytest.raises(StartError, match=f"{path}: another server answers there"):
        await second.start()
    await second.stop(0)
    async with open_channel(path) as channel:
        assert await EchoStub(channel).Unary(b"x") == b"x"
    await first.stop(0)


async def test_a_busy_listener_counts_as_living(run_directory: Path) -> None:
    path = run_directory / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.connect(str(path))
            with pytest.raises(StartError, match="another server answers there"):
                await server_at(path).start()
    assert path.exists()


async def test_health_by_service(run_directory: Path) -> None:
    path = run_directory / "s"
    server = server_at(path)
    await server.start(serving=False)
    async with open_channel(path) as channel:
        stub = health_of(channel)
        assert await check(stub) == NOT_SERVING
        server.health.set_serving(True, "test.Echo")
        assert await check(stub, "test.Echo") == SERVING
        assert await check(stub) == NOT_SERVING
        server.health.set_serving(True)
        assert await check(stub) == SERVING
        listed = await stub.List(health_pb2.HealthListRequest())
        assert {k: v.status for k, v in listed.statuses.items()} == {
            "": SERVING,
            "test.Echo": SERVING,
        }
        with pytest.raises(aio.AioRpcError) as caught:
            await check(stub, "other")
        assert caught.value.code() is StatusCode.NOT_FOUND
    await server.stop(0)


async def test_a_health_watch_follows_and_ends_with_the_server(run_directory: Path) -> None:
    path = run_directory / "s"
    server = server_at(path)
    await server.start(serving=False)
    async with open_channel(path) as channel:
        watch = health_of(channel).Watch(health_pb2.HealthCheckRequest(service=""))
        unknown = health_of(channel).Watch(health_pb2.HealthCheckRequest(service="other"))
        assert (await watch.read()).status == NOT_SERVING
        assert (await unknown.read()).status == UNKNOWN
        server.health.set_serving(True)
        assert (await watch.read()).status == SERVING
        await asyncio.wait_for(server.stop(600), LONG)
        assert (await watch.read()).status == NOT_SERVING
        assert await watch.read() is aio.EOF
        assert await unknown.read() is aio.EOF


async def test_health_answers_under_load(run_directory: Path) -> None:
    path = run_directory / "s"
    server = server_at(path)
    await server.start()
    async with open_channel(path) as busy, open_channel(path) as channel:
        stub = EchoStub(busy)
        load = [asyncio.ensure_future(stub.Unary(b"short")) for _ in range(300)]
        await asyncio.sleep(0)
        request = health_pb2.HealthCheckRequest()
        response = await health_of(channel).Check(request, timeout=60)
        assert response.status == SERVING
        assert await asyncio.gather(*load) == [b"short"] * 300
    await server.stop(0)


async def test_calls_in_hand_are_finished(run_directory: Path) -> None:
    path = run_directory / "s"
    server = server_at(path)
    await server.start()
    async with open_channel(path) as channel:
        call = EchoStub(channel).Stream(b"short")
        assert await call.read() == b"first"
        rest = asyncio.ensure_future(call.read())
        await server.stop(LONG)
        assert await rest == b"short"
        with pytest.raises(aio.AioRpcError) as caught:
            await EchoStub(channel).Unary(b"x")
        assert caught.value.code() is StatusCode.UNAVAILABLE


async def test_calls_are_cut_off_after_the_grace_period(run_directory: Path) -> None:
    path = run_directory / "s"
    server = server_at(path)
    await server.start()
    async with open_channel(path) as channel:
        call = EchoStub(channel).Stream(b"sleep")
        assert await call.read() == b"first"
        await asyncio.wait_for(server.stop(0.2), LONG)
        with pytest.raises((aio.AioRpcError, asyncio.CancelledError)):
            await call.read()


async def test_a_channel_finds_a_server_again(run_directory: Path) -> None:
    path = run_directory / "s"
    async with open_channel(path) as channel:
        stub = EchoStub(channel)
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.Unary(b"x")
        assert caught.value.code() is StatusCode.UNAVAILABLE
        for _ in range(2):
            server = server_at(path)
            await server.start()
            try:
                assert await _answer(stub) == b"x"
            finally:
                await server.stop(0)


async def _answer(stub: EchoStub) -> bytes:
    """The answer to a call, tried anew where it went out on the connection that was ending."""
    while True:
        try:
            answer: bytes = await stub.Unary(b"x", wait_for_ready=True, timeout=60)
        except aio.AioRpcError as error:
            if error.code() is not StatusCode.UNAVAILABLE:
                raise
        else:
            return answer


async def test_a_pod_sized_message_passes(run_directory: Path) -> None:
    path = run_directory / "s"
    server = server_at(path)
    await server.start()
    async with open_channel(path) as channel:
        stub = EchoStub(channel)
        big = b"x" * (2 << 20)
        assert await stub.Unary(big) == big
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.Unary(b"x" * (5 << 20))
        assert caught.value.code() is StatusCode.RESOURCE_EXHAUSTED
    await server.stop(0)


async def test_a_servicer_can_have_the_callers_own_bytes(run_directory: Path) -> None:
    path = run_directory / "s"
    own = registration(Echo(), {"Unary": lambda data: b"<" + data + b">"})
    server = ServiceServer([own], path, SocketSettings())
    await server.start()
    async with open_channel(path) as channel:
        assert await EchoStub(channel).Unary(b"x") == b"<x>"
    await server.stop(0)


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_the_services(run_directory: Path, version: str) -> None:
    path = run_directory / "s"
    server = server_at(path)
    await server.start()
    async with open_channel(path) as channel:
        reflect: Any = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest.SerializeToString,
            reflection_pb2.ServerReflectionResponse.FromString,
        )
        requests = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="grpc.health.v1.Health"),
        ]
        names, file = [response async for response in reflect(iter(requests))]
        assert {s.name for s in names.list_services_response.service} == {
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
            "test.Echo",
        }
        assert len(file.file_descriptor_response.file_descriptor_proto) == 1
    await server.stop(0)


async def test_a_server_does_not_load_what_it_may_never_need() -> None:
    script = (
        "import sys\n"
        "import numalign.rpc.server, numalign.rpc.process, numalign.store.provider_store\n"
        "import numalign.telemetry.own_metrics\n"
        "heavy = ('rich', 'grpc_reflection.v1alpha', 'opentelemetry', 'prometheus_client')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert output == b"[]\n"


def test_targets() -> None:
    assert socket_target(Path("/run/a.sock")) == "unix:/run/a.sock"
    assert socket_target(Path("/run/a b%.sock")) == "unix:/run/a%20b%25.sock"
