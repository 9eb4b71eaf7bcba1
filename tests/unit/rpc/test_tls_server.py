"""A TCP port: only for callers with a certificate of the authority."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc import StatusCode, aio
from tests.unit.rpc.certificates import Authority, make_authority
from tests.unit.rpc.echo import Echo, EchoStub, registration
from tests.unit.rpc.raw_http2 import RawClient

from numalign.config.settings import Address, LimitSettings, ListenSettings, TlsFiles
from numalign.errors import ConfigError
from numalign.rpc.tls_server import TlsServer


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("tls") / "theirs")


@asynccontextmanager
async def serving(files: TlsFiles, **limits: float) -> AsyncIterator[int]:
    server = TlsServer(
        [registration(Echo())],
        ListenSettings(address=Address("127.0.0.1", 0), tls=files),
        limits=LimitSettings(
            handshake_timeout=limits.get("handshake_timeout", LimitSettings().handshake_timeout)
        ),
    )
    await server.start()
    try:
        yield server.port
    finally:
        await server.stop(0)


def channel(port: int, trusted: Authority, own: tuple[Path, Path] | None) -> aio.Channel:
    credentials = grpc.ssl_channel_credentials(
        trusted.certificate.read_bytes(),
        own and own[1].read_bytes(),
        own and own[0].read_bytes(),
    )
    return aio.secure_channel(f"localhost:{port}", credentials)


async def outcome(opened: aio.Channel) -> StatusCode:
    async with opened as channel:
        try:
            await EchoStub(channel).Unary(b"x", timeout=60)
        except aio.AioRpcError as error:
            return error.code()
    return StatusCode.OK


async def test_a_certificate_of_the_authority_is_let_in(authority: Authority) -> None:
    async with serving(authority.files("server")) as port:
        assert await outcome(channel(port, authority, authority.issue("agent"))) is StatusCode.OK


async def test_nobody_else_is(authority: Authority, stranger: Authority) -> None:
    async with serving(authority.files("server")) as port:
        none = channel(port, authority, None)
        foreign = channel(port, authority, stranger.issue("agent"))
        plain = aio.insecure_channel(f"localhost:{port}")
        for opened in (none, foreign, plain):
            assert await outcome(opened) is StatusCode.UNAVAILABLE


async def test_a_connection_that_never_speaks_is_closed(authority: Authority) -> None:
    async with serving(authority.files("server"), handshake_timeout=0.3) as port:
        client = RawClient(*await asyncio.open_connection("127.0.0.1", port))
        assert await client.closed(60)
        await client.close()


def damage(path: Path) -> None:
    path.write_text("damaged")


def remove(path: Path) -> None:
    path.unlink()


async def test_new_files_are_used_without_a_restart(
    authority: Authority, stranger: Authority, tmp_path: Path
) -> None:
    def put(files: TlsFiles) -> TlsFiles:
        return TlsFiles(
            certificate=Path(shutil.copy(files.certificate, tmp_path / "tls.crt")),
            key=Path(shutil.copy(files.key, tmp_path / "tls.key")),
            client_authority=Path(shutil.copy(files.client_authority, tmp_path / "ca.crt")),
        )

    old, new = authority.issue("agent"), stranger.issue("agent")
    async with serving(put(authority.files("server"))) as port:
        assert await outcome(channel(port, authority, old)) is StatusCode.OK
        put(stranger.files("server"))
        assert await outcome(channel(port, stranger, new)) is StatusCode.OK
        assert await outcome(channel(port, authority, old)) is StatusCode.UNAVAILABLE
        # What cannot be used does not take the place of what can.
        damage(tmp_path / "tls.crt")
        assert await outcome(channel(port, stranger, new)) is StatusCode.OK
        remove(tmp_path / "tls.key")
        assert await outcome(channel(port, stranger, new)) is StatusCode.OK


@pytest.mark.parametrize(
    ("state", "message"),
    [
        pytest.param("missing", "listen: .*/tls.key: No such file or directory", id="missing"),
        pytest.param("empty", "listen: .*/tls.key: holds no PEM", id="no PEM"),
    ],
)
async def test_files_that_cannot_be_used_at_start(
    authority: Authority, tmp_path: Path, state: str, message: str
) -> None:
    files = authority.files("server")
    key = Path(shutil.copy(files.key, tmp_path / "tls.key"))
    (remove if state == "missing" else damage)(key)
    damaged = TlsFiles(
        certificate=files.certificate, key=key, client_authority=files.client_authority
    )
    with pytest.raises(ConfigError, match=message):
        async with serving(damaged):
            raise AssertionError("it must not serve")


async def test_a_port_that_is_taken(authority: Authority) -> None:
    files = authority.files("server")
    async with serving(files) as port:
        second = TlsServer(
            [registration(Echo())], ListenSettings(address=Address("127.0.0.1", port), tls=files)
        )
        with pytest.raises(ConfigError, match=f"listen 127.0.0.1:{port}: cannot listen there"):
            await second.start()
